"""Export to and import from JSON lines."""

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.form_tokens import once_per_form
from webapp.accounts.models import Role
from webapp.experiments.models import TaskSet
from webapp.lib.request_values import BadValue
from webapp.replay.exports import chosen_for_export, export_response
from webapp.replay.filters import EntryFilter
from webapp.replay.formats.registry import FORMATS, uploads
from webapp.replay.formats.slime_export import ImageForm
from webapp.replay.imports.run import run_small_import
from webapp.replay.models import USABLE_VERDICTS, ReplayEntry
from webapp.replay.services.imports import request_import, task_set_of, upload_of

NUM_IMPORTS = 8
"""Newest ones on the page."""


@require_http_methods(["GET", "HEAD", "POST"])
@once_per_form
def transfer(request: MemberRequest) -> HttpResponse:
    """The page with both directions; a POST has a file checked."""
    if request.method != "POST":
        member(request)
        return _page(request, [], status=200)
    team = member(request, Role.ANNOTATOR).team
    try:
        job = request_import(
            team=team,
            user=request.user,
            task_set=task_set_of(request.POST.get("task_set", ""), team),
            upload=upload_of(request.FILES.get("file")),
            keep_labels="keep_labels" in request.POST,
            takes_unknown="takes_unknown" in request.POST,
        )
    except BadValue as problem:
        return _page(request, [str(problem)], status=400)
    run_small_import(job)
    return redirect("replay-import", job.pk)


def _page(
    request: MemberRequest, problems: list[str], *, status: int, can_leave_out: bool = False
) -> HttpResponse:
    membership = member(request)
    rows = ReplayEntry.objects.filter(team_id=membership.team_id, verdict__in=USABLE_VERDICTS)
    ctx = {
        "problems": problems,
        "can_leave_out": can_leave_out,
        "num_usable": rows.count(),
        "task_sets": TaskSet.objects.listed(membership.team),
        "imports": membership.team.replay_imports.select_related("owner")[:NUM_IMPORTS],
        "formats": [(name, one) for name, one in FORMATS.items() if one.about],
        "uploads": uploads(),
        "accepted": ",".join(ending for one in FORMATS.values() for ending in one.endings),
    }
    return render(request, "replay/transfer.html", ctx, status=status)


@require_safe
def export(request: MemberRequest) -> HttpResponseBase:
    """Entries of the filter in the URL (accepted and gold when none is named), one line each."""
    chosen = EntryFilter.from_query(request.GET)
    export = chosen_for_export(member(request).team_id, chosen, only_usable="verdict" not in request.GET)
    if export.refused and "leave_out" not in request.GET:
        return _page(request, list(export.refused.values()), status=409, can_leave_out=True)
    images: ImageForm = "sha256" if request.GET.get("images") == "sha256" else "base64"
    form = request.GET.get("form", "jsonl")
    if form not in FORMATS:
        raise BadValue("form", f"one of {', '.join(FORMATS)}")
    return export_response(export, user=request.user, form=form, images=images, said=request.GET.urlencode())
