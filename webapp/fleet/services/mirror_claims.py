"""Which worker mirrors a host, and what it has to know with each of its rounds.

One worker per host does it: the right is a conditional update of the host's row that has to be renewed, so a
worker that falls silent is followed by another one within seconds.
"""

from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone

from webapp.fleet.models import Host
from webapp.fleet.queries.env_capacity import slots_of_host
from webapp.fleet.services.operations import asked_operations
from webapp.lib.remote_calls import OwnHost, OwnWorker, env_host
from webapp.lib.statements.short_statements import Sql, compiled, first_row

TAKE_OVER_AFTER = timedelta(seconds=4)
"""The mirror renews its right about every second or two."""
NOTHING: Sql = ("SELECT 1 WHERE 1 = 0", ())


@dataclass(frozen=True, slots=True)
class HostNow:
    """What a host's mirror acts on."""

    is_draining: bool
    num_slots: int
    """Of its online env workers that take work."""
    has_operations: bool
    """Operators asked for something that no one has taken yet."""
    are_desktops_wanted: bool
    """Trajectories are queued."""


RENEW = """
UPDATE fleet_host
SET mirrored_by = %s, mirrored_at = %s, heartbeat_at = CASE WHEN %s THEN %s ELSE heartbeat_at END
WHERE name = %s AND (mirrored_by = %s OR mirrored_at IS NULL OR mirrored_at < %s)
RETURNING is_draining, COALESCE(({slots}), 0), EXISTS ({asked}), EXISTS ({queued})
"""
"""Forty mirrors ask every second or two; the look comes with the write."""


def claim_mirror(*, host: str, by: str, again: bool = False, queued: Sql = NOTHING) -> HostNow | None:
    """Worker `by` mirrors `host` from now on, or still does; None when another one does.

    `again`: it did in its last round, and the desk host answered. Others look first: an update is a write
    even when it changes nothing. `queued`: a query for queued trajectories.
    """
    now = timezone.now()
    limit = now - TAKE_OVER_AFTER
    if not again:
        others = Host.objects.filter(name=host, mirrored_at__gte=limit).exclude(mirrored_by=by)
        if others.exists():
            return None
        Host.objects.get_or_create(name=host)
    looks = {
        "slots": compiled(slots_of_host, host),
        "asked": compiled(asked_operations, host),
        "queued": queued,
    }
    sql = RENEW.format(**{name: look for name, (look, _) in looks.items()})
    params = [by, now, again, now, host, by, limit]
    found = first_row(sql, [*params, *(value for _, its in looks.values() for value in its)])
    if found is None:
        return None
    is_draining, num_slots, has_operations, has_queued = found
    return HostNow(bool(is_draining), num_slots, bool(has_operations), bool(has_queued))


@env_host.request
def hand_over_mirror(host: OwnHost, by: OwnWorker) -> None:
    """The mirroring worker stops: another one may follow at once."""
    Host.objects.filter(name=host, mirrored_by=by).update(mirrored_at=None)
