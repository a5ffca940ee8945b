"""/scanners and /scans: questions over transcripts, previewed, started, and what they found."""

from datetime import datetime
from typing import Any

from ninja import Field, Router, Schema, Status

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role
from webapp.api.errors import Conflict
from webapp.api.paging import Page, page_of
from webapp.scanners.access import get_scan, get_scanner
from webapp.scanners.agreement import Agreed, with_marks, with_verdicts
from webapp.scanners.models import Finding, Outcome, Scan
from webapp.scanners.preview import preview
from webapp.scanners.queries.scanners import Known, known_scanners
from webapp.scanners.services.scanners import save_scanner
from webapp.scanners.services.scans import cancel_scan, start_scan

router = Router(tags=["scanners"])


class AgreedOut(Schema):
    """A scanner against what people said; a problem is a rejected entry, or a trajectory with a bad turn."""

    num: int
    num_equal: int
    num_both: int
    """Both call it a problem."""
    num_scanner: int
    num_people: int
    kappa: float | None
    interval: list[float] | None
    """95 %."""


class ScannerOut(Schema):
    """A shipped scanner, or one version that the team saved."""

    id: int | None
    """What lists filter by as `finding`; null before its first scan."""
    name: str
    """With its version, as "loops.v1"."""
    title: str
    definition: dict[str, Any]
    verdicts: AgreedOut | None
    """Null before its first finding."""
    marks: AgreedOut | None = None
    """Given where one scanner is asked for."""


class ScannerIn(Schema):
    """A scanner to keep, as the next version of its name."""

    name: str = Field(max_length=60)
    definition: dict[str, Any]
    """kind: text, actions, loop, still, rule or model, with its fields."""
    note: str = Field("", max_length=300)


class SliceIn(Schema):
    """What is to be read."""

    slice: str = Field("buffer-all", max_length=60)
    """buffer, buffer-all, train-NUMBER or evaluation-NUMBER of an experiment."""


class PreviewOut(Schema):
    """What a scan would read and cost; tokens are estimates, completion tokens and cost at most."""

    num_unread: int
    num_calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None


class ScanIn(SliceIn):
    """A scan to start."""

    max_read: int = Field(ge=1, le=1_000_000)
    """Trajectories, and so calls of a model, that are agreed to."""
    is_live: bool = False
    """Go on with what ends later; of an experiment."""


class ScanOut(Schema):
    """A scan: queued, scanning, watching, finished, cancelled or failed."""

    id: int
    scanner: str
    slice: str
    is_live: bool
    status: str
    message: str
    max_read: int
    num_expected: int
    num_read: int
    num_found: int
    num_unclear: int
    num_prompt_tokens: int
    num_completion_tokens: int
    cost: float
    created_at: datetime
    ended_at: datetime | None

    @staticmethod
    def resolve_scanner(scan: Scan) -> str:
        return str(scan.scanner)


class ScanPage(Page[ScanOut]):
    """Newest first; `next` is the `after` of the next page."""


class FindingOut(Schema):
    """Something that a scanner found in a trajectory."""

    trajectory: int = Field(alias="trajectory_id")
    turn: int | None
    """Index of the turn that shows it, from 0."""
    note: str


class FindingPage(Page[FindingOut]):
    """Newest first; `next` is the `after` of the next page."""


def _out(known: Known, verdicts: dict[int, Agreed]) -> dict[str, Any]:
    return {
        "id": known.row.pk if known.row else None,
        "name": known.key,
        "title": known.title,
        "definition": known.definition.model_dump(mode="json"),
        "verdicts": verdicts.get(known.row.pk) if known.row else None,
    }


@router.get("/scanners", response=list[ScannerOut], operation_id="list_scanners")
def list_scanners(request: MemberRequest) -> Any:
    """Shipped ones, then every version of the team's own, with their agreement with verdicts."""
    known = known_scanners(member(request).team)
    verdicts = with_verdicts([one.row.pk for one in known if one.row])
    return [_out(one, verdicts) for one in known]


@router.post("/scanners", response={201: ScannerOut}, operation_id="save_scanner")
def save(request: MemberRequest, body: ScannerIn) -> Any:
    """Keep the next version of a name; older ones stay as they are."""
    team = member(request, Role.OPERATOR).team
    row = save_scanner(team=team, user=request.user, **dict(body))
    return Status(201, _out(get_scanner(team, str(row)), {}))


@router.get("/scanners/{scanner}", response=ScannerOut, operation_id="show_scanner")
def show_scanner(request: MemberRequest, scanner: str) -> Any:
    """One scanner, with its agreement with verdicts and with marks of turns."""
    known = get_scanner(member(request).team, scanner)
    if known.row is None:
        return _out(known, {})
    marks = with_marks(known.row.pk).agreed
    return {**_out(known, with_verdicts([known.row.pk])), "marks": marks}


@router.get("/scanners/{scanner}/findings", response=FindingPage, operation_id="list_findings")
def list_findings(request: MemberRequest, scanner: str, after: str = "", limit: int = 50) -> Any:
    """What it found, newest first."""
    known = get_scanner(member(request).team, scanner)
    return page_of(Finding.objects.filter(scanner=known.row, outcome=Outcome.FOUND), after, limit)


@router.post("/scanners/{scanner}/preview", response=PreviewOut, operation_id="preview_scan")
def preview_scan(request: MemberRequest, scanner: str, body: SliceIn) -> Any:
    """Number and cost of a scan; nothing is sent to a model."""
    team = member(request, Role.OPERATOR).team
    return preview(team, get_scanner(team, scanner), body.slice)


@router.post("/scanners/{scanner}/scans", response={201: ScanOut}, operation_id="start_scan")
def start(request: MemberRequest, scanner: str, body: ScanIn) -> Any:
    """Queue a scan. What the scanner has read is not read again."""
    team = member(request, Role.OPERATOR).team
    scan = start_scan(
        team=team,
        user=request.user,
        known=get_scanner(team, scanner),
        slice_key=body.slice,
        is_live=body.is_live,
        max_read=body.max_read,
    )
    return Status(201, scan)


@router.get("/scans", response=ScanPage, operation_id="list_scans")
def list_scans(request: MemberRequest, after: str = "", limit: int = 50) -> Any:
    """Scans of the current team, newest first."""
    rows = Scan.objects.filter(team=member(request).team).select_related("scanner")
    return page_of(rows, after, limit)


@router.get("/scans/{int:pk}", response=ScanOut, operation_id="show_scan")
def show_scan(request: MemberRequest, pk: int) -> Any:
    """How far it is."""
    return get_scan(request, pk)


@router.post("/scans/{int:pk}/cancel", response=ScanOut, operation_id="cancel_scan")
def cancel(request: MemberRequest, pk: int) -> Any:
    """Read nothing more; its findings stay. 409 when it has ended."""
    scan = get_scan(request, pk, Role.OPERATOR)
    if not cancel_scan(scan=scan, user=request.user):
        raise Conflict(f"Scan {pk} is {scan.status}; it has ended.")
    return get_scan(request, pk)
