"""How a host joins, is known again, and is sent away."""

import hashlib
import os
import re
import secrets
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from training.contracts.types import TrajectoryStatus
from webapp.accounts.models import AuditAction, Team
from webapp.accounts.services.audit_log import COMMAND_LINE, log_action, only_team
from webapp.experiments.models import Attempt
from webapp.experiments.services.attempts import lose_attempt
from webapp.fleet.models import Host, JoinedHost, JoinToken, Worker, WorkerStatus
from webapp.lib.host_links.certificates import Authority
from webapp.lib.host_links.joined_identity import SHARED_VARIABLES
from webapp.live.event_publishing import publish
from webapp.trajectories.models import RUNNING, Trajectory
from webapp.trajectories.services.trajectories import end_trajectory
from webapp.worker_door.joined_hosts.contract_version import version

TOKEN_HOURS = 1.0
LONGEST_HOURS = 366 * 24.0
MOMENT = timedelta(milliseconds=2)
HOST_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,99}")


class JoinRefused(Exception):
    """Raised when a host may not come in; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Welcome:
    """What a host gets when it joins."""

    name: str
    secret: str
    environment: dict[str, str]
    """Settings of the installation that are not set on the host itself."""


@transaction.atomic
def make_token(
    *,
    user: User | None,
    roles: Sequence[str],
    team: Team | None,
    hours: float = TOKEN_HOURS,
    most_hosts: int | None = 1,
) -> str:
    """SECRET or SECRET.FINGERPRINT, of our own authority. `most_hosts`: how many may join; None = any number.

    `team`: the only one that the hosts will work for; None = all. `user`: None = a command of `manage.py`.
    """
    secret = secrets.token_hex(24)  # a shell and a Makefile take it as it is
    until = timezone.now() + timedelta(hours=min(hours, LONGEST_HOURS))
    JoinToken.objects.create(
        digest=_digest(secret),
        made_by_name=user.get_username() if user else COMMAND_LINE,
        expires_at=until,
        roles=list(roles),
        team=team,
        most_hosts=most_hosts,
    )
    log_action(
        AuditAction.OPERATED,
        person=user,
        team=only_team(user) if user else team,
        kind="host",
        verb="invite",
        hosts=most_hosts or "any number",
        until=until.isoformat(timespec="seconds"),
    )
    if settings.HOSTS_SERVER.is_local:  # a proxy with a certificate of its own stands in front
        return secret
    return f"{secret}.{Authority.of(settings.SECRETS_DIR).fingerprint}"


def join_command(roles: Sequence[str]) -> str:
    """What to run on the machine that is to become a host; it asks for the token."""
    return f"make join SERVER={settings.HOSTS_URL} ROLES={','.join(roles)}"


@transaction.atomic
def join(*, token: str, name: str, roles: Sequence[str], sent_version: str) -> Welcome:
    """Take a host in. Raises JoinRefused."""
    if not HOST_NAME.fullmatch(name):
        raise JoinRefused(f"name: {name!r} is no host name; set DESKHAND_HOST_NAME")
    require_version(sent_version)
    now, digest = timezone.now(), _digest(token)
    # All are locked: hosts join one after another, or two of one name would both find it free.
    usable = list(usable_tokens().select_for_update().order_by("pk"))
    found = next((one for one in usable if one.digest == digest), None)
    if found is None:
        raise JoinRefused(
            "token: unknown, used up, or too old; Fleet > Add a host makes a new one, "
            "`manage.py invite_hosts` one for many hosts"
        )
    if not set(roles) or not set(roles) <= set(found.roles):
        raise JoinRefused(f"roles: this token is for {', '.join(found.roles)}, not for {', '.join(roles)}")
    _require_free(name)
    JoinToken.objects.filter(pk=found.pk).update(used_at=now, num_hosts=F("num_hosts") + 1)
    secret = secrets.token_urlsafe(32)
    host, _ = Host.objects.get_or_create(name=name)
    before = JoinedHost.objects.filter(host=host).first()
    known = [at + MOMENT for at in (before.joined_at, before.revoked_at) if at] if before else []
    joined = max([now, *known])  # policy tokens go by it, also when the clock has gone back
    JoinedHost.objects.update_or_create(
        host=host,
        defaults={
            "digest": _digest(secret),
            "version": sent_version,
            "stream": "",
            "received": 0,
            "num_refused": 0,
            "heard_at": now,
            "joined_at": joined,
            "invited_by_name": found.made_by_name,
            "roles": list(dict.fromkeys(roles)),
            "team": found.team,
            "revoked_at": None,
        },
    )
    publish("fleet", "host.updated", {"host": name})
    shared = {variable: os.environ[variable] for variable in SHARED_VARIABLES if os.environ.get(variable)}
    return Welcome(name, secret, shared)


def usable_tokens() -> QuerySet[JoinToken]:
    """Those with which a host may still come."""
    has_room = Q(most_hosts=None) | Q(num_hosts__lt=F("most_hosts"))
    return JoinToken.objects.filter(has_room, expires_at__gt=timezone.now())


def end_token(pk: int) -> bool:
    """Nothing joins with it any more; False when it had ended."""
    return bool(usable_tokens().filter(pk=pk).update(expires_at=timezone.now()))


def _require_free(name: str) -> None:
    """Raise JoinRefused when a machine of this name is here already: what is its own stays its own."""
    if JoinedHost.objects.filter(host__name__iexact=name, revoked_at=None).exists():
        raise JoinRefused(
            f"name: a host {name} has joined; revoke it on the fleet page, or set DESKHAND_HOST_NAME"
        )
    is_known = Host.objects.filter(name__iexact=name, joined=None).exists()
    is_used = Worker.objects.filter(host__iexact=name, is_joined=False).exists()
    if is_known or is_used or name.lower() == socket.gethostname().lower():
        raise JoinRefused(f"name: {name} is a machine of this installation's own; set DESKHAND_HOST_NAME")


def find_host(name: str, secret: str) -> JoinedHost | None:
    """The host with this identity; None for a wrong or revoked one."""
    known = JoinedHost.objects.select_related("host").filter(revoked_at=None)
    host = known.filter(host__name=name).first()
    return host if host and constant_time_compare(host.digest, _digest(secret)) else None


def require_version(sent: str) -> None:
    """Raise JoinRefused for another version of Deskhand."""
    if sent != version():
        raise JoinRefused(
            f"version: this host runs Deskhand {sent or 'of no version'}, the server {version()}; check out "
            "the server's version and run `make host` again"
        )


def revoke(*, host: JoinedHost, user: User) -> None:
    """Its secret opens nothing any more; what it ran is run again elsewhere."""
    with transaction.atomic():
        JoinedHost.objects.filter(pk=host.pk).update(revoked_at=timezone.now())
        Worker.objects.filter(host=host.name, is_joined=True).update(status=WorkerStatus.LOST)
        log_action(
            AuditAction.OPERATED,
            person=user,
            team=only_team(user),
            kind="host",
            object_id=host.name,
            verb="revoke",
        )
        publish("fleet", "host.updated", {"host": host.name})
    mine = Worker.objects.filter(host=host.name, is_joined=True).values("name")
    for attempt in Attempt.objects.filter(worker_name__in=mine, ended_at=None).select_related("experiment"):
        lose_attempt(attempt, f"host {host.name} was revoked")
    ran = Trajectory.objects.filter(worker__host=host.name, worker__is_joined=True, status__in=RUNNING)
    for pk in ran.values_list("pk", flat=True):
        end_trajectory(
            trajectory_id=pk,
            status=TrajectoryStatus.ERRORED,
            error=f"host {host.name} was revoked",
            error_kind="worker_lost",
        )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
