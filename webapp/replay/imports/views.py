"""The page of an import: how far it is, what its file holds, and what people do about it."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from webapp.accounts.access import MemberRequest
from webapp.accounts.models import Role
from webapp.live.event_publishing import last_seq
from webapp.replay.access import get_import
from webapp.replay.imports.run import run_small_import
from webapp.replay.models import ImportStatus, ReplayImport
from webapp.replay.services.imports import approve_import

NUM_SHOWN = 100
"""Bad lines on the page; the API lists all that are kept."""


@require_safe
def show(request: MemberRequest, pk: int) -> HttpResponse:
    """The page; its part updates by the import's stream."""
    cursor = last_seq(f"import.{pk}")
    job = get_import(request, pk)
    return render(request, "replay/import.html", {"cursor": cursor, **_context(job)})


@require_safe
def part(request: MemberRequest, pk: int) -> HttpResponse:
    """All but the heading, as live updates ask for it."""
    return render(request, "replay/parts/import.html", _context(get_import(request, pk)))


@require_POST
def start(request: MemberRequest, pk: int) -> HttpResponse:
    """Store what the check found new."""
    job = get_import(request, pk, Role.ANNOTATOR)
    if not approve_import(job=job, user=request.user):
        messages.warning(request, f"Nothing was started: this import is {job.status}.")
    else:
        run_small_import(job)
    return redirect("replay-import", pk)


@require_POST
def cancel(request: MemberRequest, pk: int) -> HttpResponse:
    """Store nothing more."""
    job = get_import(request, pk, Role.ANNOTATOR)
    if not job.cancel():
        job.refresh_from_db()
        messages.warning(request, f"Nothing was cancelled: this import is {job.status}.")
    return redirect("replay-import", pk)


def _context(job: ReplayImport) -> dict[str, Any]:
    status = ImportStatus(job.status)
    return {
        "job": job,
        "is_working": status in (ImportStatus.CHECKING, ImportStatus.STORING),
        "is_waiting": status in (ImportStatus.QUEUED, ImportStatus.APPROVED),
        "is_checked": status is ImportStatus.CHECKED,
        "was_stored": job.num_stored > 0 or status in (ImportStatus.STORING, ImportStatus.APPROVED),
        "has_ended": status.is_final(),
        "more_known": job.num_known - len(job.known),
        "problems": job.problems[:NUM_SHOWN],
        "more_problems": job.num_bad - min(len(job.problems), NUM_SHOWN),
    }
