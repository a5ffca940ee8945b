"""Scans as rows: what people ask for, and what the process reports that reads transcripts.

    queued -> scanning -> finished            a live one: scanning -> watching -> scanning -> ...
    (cancelled, failed: from all before)

What was read has its finding in the same transaction: nothing is asked twice.
"""

from collections.abc import Sequence
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from webapp.accounts.models import AuditAction, Team
from webapp.accounts.services.audit_log import log_action
from webapp.experiments.models import Experiment
from webapp.lib.request_values import BadValue, row_id
from webapp.rewards_lab.slices import rows_of
from webapp.scanners.definition_schemas import check_allowed
from webapp.scanners.models import Finding, Outcome, Scan, Scanner, ScanStatus
from webapp.scanners.queries.scanners import Known
from webapp.scanners.services.scanners import ensure_row
from webapp.trajectories.models import Trajectory

MAX_OPEN = 10
"""Of a team."""
MOST = 1_000_000
"""Trajectories of one scan."""
LOOK_EVERY = timedelta(seconds=10)


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
    open_ones = Scan.objects.filter(team=team, ended_at=None)
    if open_ones.count() >= MAX_OPEN:
        raise BadValue("slice", f"{MAX_OPEN} scans of your team are open; cancel one of them")
    with transaction.atomic():
        scanner = ensure_row(team, known)
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
        scan.publish()
    return scan


@transaction.atomic
def cancel_scan(*, scan: Scan, user: User) -> bool:
    """Read nothing more; its findings stay. False when it has ended."""
    if not scan.cancel():
        return False
    log_action(AuditAction.CANCELLED, person=user, team=scan.team_id, kind="scan", object_id=scan)
    return True


# --- what the dispatcher asks ------------------------------------------------------------------------


def next_scan() -> int | None:
    """The oldest one that no living process works on, or a live one with something to read."""
    waiting = Scan.claimable().exclude(status=ScanStatus.WATCHING).values_list("pk", flat=True).first()
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


# --- what the process reports ------------------------------------------------------------------------


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
    scan.beat(**values)


def end_pass(*, scan: Scan, left: int) -> None:
    """Everything that was there is read, or `left` are not since no more was agreed to."""
    if left:
        message = f"{left} more are not read: {scan.max_read} were agreed to. Start another scan for them."
        scan.end(ScanStatus.FINISHED, message)
    elif has_source_ended(scan):
        scan.end(ScanStatus.FINISHED)
    else:
        scan.move(ScanStatus.WATCHING, heartbeat_at=None, message="", looked_at=timezone.now())


def _experiment_of(team_id: int, key: str) -> Experiment | None:
    kind, _, number = key.partition("-")
    pk = row_id(number) if kind in ("train", "evaluation") else None
    return Experiment.objects.filter(team_id=team_id, pk=pk).first() if pk is not None else None
