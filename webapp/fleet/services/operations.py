"""Writes of operators: each is a row that says who asked for what, when, and what became of it.

What concerns workers and hosts is a flag that they read with their next heartbeat; what concerns desktops
waits as a row until the mirror of their host carries it out. asked -> running -> done | failed | expired
"""

from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from webapp.accounts.models import AuditAction
from webapp.accounts.services.audit_log import log_action, only_team
from webapp.fleet.models import (
    Desktop,
    DesktopPhase,
    Host,
    Operation,
    OperationStatus,
    TargetKind,
    Verb,
    Worker,
)
from webapp.lib.heartbeat_age import silent_for
from webapp.live.event_publishing import publish

EXPIRE_AFTER = timedelta(seconds=30)
"""A mirror looks every second; who has not been served by then should look what is wrong instead."""
DESKTOP_VERBS = (Verb.RESTART, Verb.QUARANTINE, Verb.RELEASE, Verb.KILL)
NEEDS_REASON = (Verb.QUARANTINE,)
OPEN = (OperationStatus.ASKED, OperationStatus.RUNNING)


class Refused(Exception):
    """Raised when an operation makes no sense as things stand; the message is for people."""


@transaction.atomic
def request_operation(*, desktop: Desktop, verb: Verb, user: User, reason: str = "") -> Operation:
    """Ask the desktop's host. Raises Refused."""
    reason = reason.strip()
    if verb not in DESKTOP_VERBS:
        raise Refused(f"{verb}: desktops know {', '.join(DESKTOP_VERBS)}.")
    if verb in NEEDS_REASON and not reason:
        raise Refused(f"{verb}: say why; the next person has to understand it.")
    if desktop.mirrored_at is None:
        raise Refused(f"{desktop.name} belongs to a remote service; it cannot be operated from here.")
    if desktop.phase == DesktopPhase.GONE:
        raise Refused(f"{desktop.name} is gone already.")
    waiting = Operation.objects.filter(target=desktop.name, kind=TargetKind.DESKTOP, status__in=OPEN)
    if waiting.exists():
        raise Refused(f"{desktop.name}: another operation is still under way.")
    return _record(verb, TargetKind.DESKTOP, desktop.name, desktop.host, user, reason=reason)


@transaction.atomic
def drain_worker(*, worker: Worker, on: bool, user: User) -> Operation:
    """No new work for this worker, or work again; it obeys with its next heartbeat."""
    Worker.objects.filter(pk=worker.pk).update(is_draining=on)
    verb = Verb.DRAIN if on else Verb.UNDRAIN
    outcome = "takes nothing new; what it runs goes on" if on else "takes work again"
    return _record(verb, TargetKind.WORKER, worker.name, worker.host, user, outcome=outcome)


@transaction.atomic
def drain_host(*, host: Host, on: bool, user: User) -> Operation:
    """The same for all workers of a machine, and for its desk host (which the mirror tells)."""
    Host.objects.filter(pk=host.pk).update(is_draining=on)
    changed = Worker.objects.filter(host=host.name).exclude(is_draining=on).update(is_draining=on)
    verb = Verb.DRAIN if on else Verb.UNDRAIN
    many = f"{changed} worker{'' if changed == 1 else 's'}"
    outcome = (
        f"{many} and the desk host take nothing new" if on else f"{many} and the desk host take work again"
    )
    return _record(verb, TargetKind.HOST, host.name, host.name, user, outcome=outcome)


def _record(
    verb: Verb, kind: TargetKind, target: str, host: str, user: User, *, reason: str = "", outcome: str = ""
) -> Operation:
    """With an outcome it is done already."""
    operation = Operation.objects.create(
        verb=verb,
        kind=kind,
        target=target,
        host=host,
        reason=reason[:300],
        asked_by=user,
        asked_by_name=user.get_username(),
        status=OperationStatus.DONE if outcome else OperationStatus.ASKED,
        outcome=outcome,
        ended_at=timezone.now() if outcome else None,
    )
    detail = {"verb": verb, "host": host, **({"reason": operation.reason} if reason else {})}
    log_action(AuditAction.OPERATED, person=user, team=only_team(user), kind=kind, object_id=target, **detail)
    publish("fleet", "operation.updated", {"operation": operation.pk, "status": operation.status})
    return operation


# --- the mirror's side -------------------------------------------------------------------------------


def asked_operations(host: str) -> QuerySet[Operation]:
    """What waits for the mirror of a host."""
    return Operation.objects.filter(host=host, status=OperationStatus.ASKED)


def take_operations(*, host: str) -> list[Operation]:
    """Claim what is asked of a host's desktops, oldest first."""
    return [
        operation
        for operation in asked_operations(host).order_by("id")
        if Operation.objects.filter(pk=operation.pk, status=OperationStatus.ASKED).update(
            status=OperationStatus.RUNNING
        )
    ]


@transaction.atomic
def end_operation(*, operation: Operation, status: OperationStatus, outcome: str) -> None:
    """Say what became of it."""
    Operation.objects.filter(pk=operation.pk, status__in=OPEN).update(
        status=status, outcome=outcome, ended_at=timezone.now()
    )
    publish("fleet", "operation.updated", {"operation": operation.pk, "status": status})


def expire_operations() -> int:
    """End what no worker carried out, or what its worker died over; returns how many."""
    late = Operation.objects.filter(silent_for(EXPIRE_AFTER, "asked_at"), status__in=OPEN)
    for operation in late:
        was_taken = operation.status == OperationStatus.RUNNING
        outcome = (
            "the worker that carried it out did not come back; look at the desktop"
            if was_taken
            else "no env worker of this host took it; is one alive?"
        )
        end_operation(operation=operation, status=OperationStatus.EXPIRED, outcome=outcome)
    return len(late)
