"""Scans as rows: what people ask for, and what the process reports that reads transcripts.

    queued -> scanning -> finished            a live one: scanning -> watching -> scanning -> ...
    (cancelled, failed: from all before)

The dispatcher starts a process for the next one, which claims the row by raising its number and writes under
that number alone. What was read has its finding in the same transaction: nothing is asked twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from webapp.accounts.models import AuditAction, Team
from webapp.accounts.services.audit_log import log_action
from webapp.dispatcher.child_work import BadEnd
from webapp.experiments.models import Experiment
from webapp.lib.request_values import BadValue, row_id
from webapp.lib.transitions import sources_of
from webapp.live.event_publishing import publish
from webapp.rewards_lab.slices import rows_of
from webapp.scanners.definitions import check_allowed
from webapp.scanners.library import Known, row_of
from webapp.scanners.models import SCAN_TRANSITIONS, Finding, Outcome, Scan, Scanner, ScanStatus
from webapp.trajectories.models import Trajectory

MAX_OPEN = 10
"""Of a team."""
MAX_LOST = 3
MOST = 1_000_000
"""Trajectories of one scan."""
HEARTBEAT_TIMEOUT = timedelta(seconds=600)
"""A batch of slow calls, each tried four times, takes minutes."""
LOOK_EVERY = timedelta(seconds=10)
CLAIMABLE = (ScanStatus.QUEUED, ScanStatus.SCANNING)


class TakenAway(Exception):
    """Raised when the scan was cancelled, or another process has it: stop, and store nothing more."""


def unread(team_id: int, key: str, scanner: Scanner | None) -> QuerySet[Trajectory]:
    """Trajectories of a slice that a scanner has not read, the oldest first. Raises BadValue."""
    rows = rows_of(team_id, key).order_by("pk")
    if scanner is None:
        return rows
    mine = Finding.objects.filter(scanner=scanner, trajectory=OuterRef("pk"))
    return rows.filter(~Exists(mine))


# --- what people ask for -----------------------------------------------------------------------------


def start_scan(*, team: Team, user: User, known: Known, slice_key: str, is_live: bool, max_read: int) -> Scan:
    """Queue it. Raises BadValue while too many are open, where its model may not be asked, and for a live
    one of anything but an experiment."""
    check_allowed(known.definition, team)
    if not 1 <= max_read <= MOST:
        raise BadValue("max_read", f"from 1 to {MOST}")
    if is_live and _experiment_of(team.pk, slice_key) is None:
        raise BadValue("slice", "choose an experiment to follow; other slices are scanned as they are")
    open_ones = Scan.objects.filter(team=team).exclude(status__in=_final())
    if open_ones.count() >= MAX_OPEN:
        raise BadValue("slice", f"{MAX_OPEN} scans of your team are open; cancel one of them")
    with transaction.atomic():
        scanner = row_of(team, known)
        if open_ones.filter(scanner=scanner, slice=slice_key).exists():
            raise BadValue("slice", f"{scanner} is reading it already")
        scan = Scan.objects.create(
            team=team,
            scanner=scanner,
            slice=slice_key,
            is_live=is_live,
            max_read=max_read,
            num_expected=min(max_read, unread(team.pk, slice_key, scanner).count()),
            owner=user,
        )
        log_action(
            AuditAction.LAUNCHED, person=user, team=team, kind="scan", object_id=scan, scanner=str(scanner)
        )
        _publish(scan)
    return scan


@transaction.atomic
def cancel_scan(*, scan: Scan, user: User) -> bool:
    """Read nothing more; its findings stay. False when it has ended."""
    if not _end(scan, ScanStatus.CANCELLED, "Cancelled."):
        return False
    log_action(AuditAction.CANCELLED, person=user, team=scan.team_id, kind="scan", object_id=scan)
    return True


# --- what the dispatcher asks ------------------------------------------------------------------------


def next_scan() -> int | None:
    """The oldest one that no living process works on, or a live one with something to read."""
    waiting = _claimable().order_by("pk").values_list("pk", flat=True).first()
    if waiting is not None:
        return waiting
    now = timezone.now()
    due = Scan.objects.filter(status=ScanStatus.WATCHING, heartbeat_at=None)
    due = due.filter(Q(looked_at=None) | Q(looked_at__lt=now - LOOK_EVERY))
    for scan in due.select_related("scanner").order_by("looked_at", "pk")[:20]:
        Scan.objects.filter(pk=scan.pk).update(looked_at=now)
        if has_more(scan) or has_source_ended(scan):
            return scan.pk
    return None


def has_more(scan: Scan) -> bool:
    """Is there anything it has not read?"""
    return unread(scan.team_id, scan.slice, scan.scanner).exists()


def has_source_ended(scan: Scan) -> bool:
    """Will nothing come any more?"""
    experiment = _experiment_of(scan.team_id, scan.slice)
    return not scan.is_live or experiment is None or experiment.ended_at is not None


def lose_scan(pk: int, end: BadEnd) -> None:
    """Its process ended badly: it ends with the reason, or says it and waits for another process."""
    scan = Scan.objects.filter(pk=pk).first()
    if scan is None:
        return
    num_lost = scan.num_lost + 1
    if not end.may_pass or num_lost >= MAX_LOST:
        fail_scan(scan=scan, message=end.why if num_lost == 1 else f"{end.why} {num_lost} processes died.")
        return
    with transaction.atomic():
        unended = Scan.objects.filter(pk=pk, claim=scan.claim).exclude(status__in=_final())
        if unended.update(num_lost=num_lost, message=f"{end.why} Another one goes on.", heartbeat_at=None):
            _publish(scan)


# --- what the process reports ------------------------------------------------------------------------


def claim_scan(pk: int) -> Scan | None:
    """Take it; None when another process was first or it ended."""
    rows = _claimable() | Scan.objects.filter(status=ScanStatus.WATCHING, heartbeat_at=None)
    scan = rows.select_related("team", "scanner").filter(pk=pk).first()
    if scan is None:
        return None
    is_lost = scan.heartbeat_at is not None
    if is_lost and scan.num_lost >= MAX_LOST:
        fail_scan(scan=scan, message=f"The process that read it died {MAX_LOST} times.")
        return None
    mine = Scan.objects.filter(pk=pk, claim=scan.claim, status=scan.status)
    values = {"status": ScanStatus.SCANNING, "num_lost": F("num_lost") + int(is_lost)}
    if not mine.update(claim=scan.claim + 1, heartbeat_at=timezone.now(), **values):
        return None
    scan.refresh_from_db()
    _publish(scan)
    return scan


@transaction.atomic
def record_findings(
    *, scan: Scan, findings: Sequence[Finding], prompt_tokens: int, completion_tokens: int, cost: float
) -> None:
    """Store what a batch gave, and how far the scan is. Raises TakenAway."""
    Finding.objects.bulk_create(findings, ignore_conflicts=True)
    outcomes = [finding.outcome for finding in findings]
    values = {
        "num_read": scan.num_read + len(findings),
        "num_found": scan.num_found + outcomes.count(Outcome.FOUND),
        "num_unclear": scan.num_unclear + outcomes.count(Outcome.UNCLEAR),
        "num_prompt_tokens": scan.num_prompt_tokens + prompt_tokens,
        "num_completion_tokens": scan.num_completion_tokens + completion_tokens,
        "cost": scan.cost + cost,
    }
    mine = Scan.objects.filter(pk=scan.pk, claim=scan.claim, status=ScanStatus.SCANNING)
    if not mine.update(heartbeat_at=timezone.now(), **values):
        raise TakenAway(str(scan))
    for name, value in values.items():
        setattr(scan, name, value)
    _publish(scan)


def release_scan(*, scan: Scan) -> None:
    """Another process may go on at once: this one has to stop."""
    Scan.objects.filter(pk=scan.pk, claim=scan.claim).update(heartbeat_at=None)


def pass_ended(*, scan: Scan, left: int) -> None:
    """Everything that was there is read, or `left` are not since no more was agreed to."""
    if left:
        message = f"{left} more are not read: {scan.max_read} were agreed to. Start another scan for them."
        _end(scan, ScanStatus.FINISHED, message, by=scan.claim)
    elif has_source_ended(scan):
        _end(scan, ScanStatus.FINISHED, "", by=scan.claim)
    else:
        idle = {"heartbeat_at": None, "message": "", "looked_at": timezone.now()}
        _change(scan, ScanStatus.WATCHING, by=scan.claim, **idle)


def fail_scan(*, scan: Scan, message: str) -> None:
    """It cannot go on; `message` says what to do."""
    _end(scan, ScanStatus.FAILED, message, by=scan.claim)


# --- rows --------------------------------------------------------------------------------------------


def _final() -> list[ScanStatus]:
    return [status for status in ScanStatus if status.is_final()]


def _claimable() -> QuerySet[Scan]:
    held = ~Q(heartbeat_at=None) & Q(heartbeat_at__gte=timezone.now() - HEARTBEAT_TIMEOUT)
    return Scan.objects.filter(Q(status__in=CLAIMABLE) & ~held)


def _experiment_of(team_id: int, key: str) -> Experiment | None:
    kind, _, number = key.partition("-")
    pk = row_id(number) if kind in ("train", "evaluation") else None
    return Experiment.objects.filter(team_id=team_id, pk=pk).first() if pk is not None else None


def _end(scan: Scan, to: ScanStatus, message: str, *, by: int | None = None) -> bool:
    ended = {"message": message, "ended_at": timezone.now(), "heartbeat_at": None}
    return _change(scan, to, by=by, **ended)


def _change(scan: Scan, to: ScanStatus, *, by: int | None = None, **values: Any) -> bool:
    """Move it along SCAN_TRANSITIONS; False when its status has changed meanwhile."""
    rows = Scan.objects.filter(pk=scan.pk, status__in=sources_of(to, SCAN_TRANSITIONS))
    if by is not None:
        rows = rows.filter(claim=by)
    with transaction.atomic():
        moved = rows.update(status=to, **values)
        if moved:
            scan.refresh_from_db()
            _publish(scan)
    return bool(moved)


def _publish(scan: Scan) -> None:
    publish(f"scan.{scan.pk}", "scan.changed", {"status": scan.status, "num_read": scan.num_read})
