"""What the history charts are made of, written by mirrors' ticks; three days take as many rows as an hour.

Each window of time has samples of its own width, MAX_POINTS of each host. Ended trajectories are counted by
the minute, once nothing can end in it any more; what is not counted yet is read from their rows.
"""

from collections import Counter
from datetime import datetime
from typing import Any

from django.db.models import Max
from django.utils import timezone

from webapp.fleet.models import Desktop, DesktopPhase, EndedMinute, Host, HostSample
from webapp.fleet.queries.history import MINUTE_S, WINDOWS, ended_minutes, width_s
from webapp.lib.remote_calls import OwnHost, env_host

LATE_S = 60
"""No transaction that ends a trajectory takes longer."""
CATCH_UP_MINUTES = 360
"""Counted by one tick, so that none takes long after an upgrade or a long stop."""


def record_sample(host: Host, at: datetime, **values: Any) -> None:
    """In the samples of every width; the latest look within a width counts."""
    at_s = int(at.timestamp())
    widths = [width_s(window) for window in WINDOWS.values()]
    HostSample.objects.bulk_create(
        (HostSample(host=host, width_s=width, bucket=at_s // width, **values) for width in widths),
        update_conflicts=True,
        unique_fields=["width_s", "bucket", "host"],
        update_fields=list(values),
    )


def count_ended() -> None:
    """Keep the counts of the minutes since the last one that was counted, CATCH_UP_MINUTES at most."""
    now_s = int(timezone.now().timestamp())
    oldest = (now_s - int(max(WINDOWS.values()).total_seconds())) // MINUTE_S
    last = EndedMinute.objects.aggregate(last=Max("minute"))["last"]
    first = oldest if last is None else max(last + 1, oldest)
    end = min((now_s - LATE_S) // MINUTE_S, first + CATCH_UP_MINUTES)
    if end <= first:
        return
    # The last minute is kept even when nothing ended in it: so far it has been counted.
    counts = {end - 1: EndedMinute(minute=end - 1, num_ended=0, num_errored=0)}
    counts |= {row.minute: row for row in ended_minutes(first, end)}
    # Another host's mirror may have been first; in one order, so that two never wait for each other.
    rows = sorted(counts.values(), key=lambda row: row.minute)
    EndedMinute.objects.bulk_create(rows, ignore_conflicts=True)


def forget_history() -> None:
    """Drop what no chart reaches."""
    now = timezone.now()
    for window in WINDOWS.values():
        width = width_s(window)
        oldest = int((now - window).timestamp()) // width
        HostSample.objects.filter(width_s=width, bucket__lt=oldest).delete()
    oldest = int((now - max(WINDOWS.values())).timestamp()) // MINUTE_S
    EndedMinute.objects.filter(minute__lt=oldest).delete()


@env_host.request
def sample_host(host: OwnHost) -> None:
    """One look at a host, and what ended meanwhile, for the history charts."""
    row = Host.objects.get(name=host)
    phases: Counter[str] = Counter(
        Desktop.objects.filter(host=host).exclude(phase=DesktopPhase.GONE).values_list("phase", flat=True)
    )
    record_sample(
        row,
        timezone.now(),
        ready=phases[DesktopPhase.READY],
        leased=phases[DesktopPhase.LEASED],
        booting=phases[DesktopPhase.STARTING] + phases[DesktopPhase.RESETTING],
        dead=phases[DesktopPhase.DEAD],
        quarantined=phases[DesktopPhase.QUARANTINED],
        reset_p50_s=row.reset_p50_s,
        reset_p99_s=row.reset_p99_s,
        leaks=len(row.leaks),
    )
    count_ended()
