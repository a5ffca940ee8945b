"""The page on which people bring in files of tasks."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.form_tokens import once_per_form
from webapp.accounts.models import Role, Team
from webapp.experiments.models import TaskSet, TaskStatus
from webapp.lib.request_values import BadValue, decimal_number
from webapp.tasks_library.services.task_sets import Brought, Refused, import_tasks
from webapp.tasks_library.upload import MAX_UPLOAD, MIB, read_upload

MAX_SHOWN = 200


@require_http_methods(["GET", "HEAD", "POST"])
@once_per_form
def upload(request: MemberRequest) -> HttpResponse:
    """A POST brings a whole file in, or nothing of it and says why."""
    team = member(request, Role.OPERATOR).team
    if request.method != "POST":
        return _page(request, team, {"set_name": request.GET.get("set", ""), "heldout": "0.2"})
    typed = request.POST
    ctx: dict[str, Any] = {
        "set_name": typed.get("set", "").strip(),
        "heldout": typed.get("heldout", "0.2"),
        "leaves_out": "leave_out" in typed,
    }
    try:
        file = request.FILES.get("file")
        share = decimal_number(ctx["heldout"], "heldout", low=0, high=1)
        brought = import_tasks(
            team=team,
            user=request.user,
            set_name=ctx["set_name"],
            origin=(file.name or "")[:120] if file else "",
            loaded=read_upload(file, heldout_fraction=share),
            leaves_out=ctx["leaves_out"],
        )
    except BadValue as problem:
        return _page(request, team, ctx | {"problems": [str(problem)]}, status=422)
    except Refused as refused:
        shown, num = refused.reasons[:MAX_SHOWN], len(refused.reasons)
        return _page(
            request,
            team,
            ctx | {"problems": shown, "more": num - len(shown), "can_leave_out": True},
            status=422,
        )
    return _page(request, team, ctx | {"brought": brought, **_result(brought)})


def _result(brought: Brought) -> dict[str, Any]:
    rows = [row for row in brought.written.rows if row.status == TaskStatus.UNSUPPORTED]
    return {
        "unsupported": rows[:MAX_SHOWN],
        "more_unsupported": len(rows) - len(rows[:MAX_SHOWN]),
        "left_out": brought.left_out[:MAX_SHOWN],
        "more_left_out": len(brought.left_out) - len(brought.left_out[:MAX_SHOWN]),
    }


def _page(request: MemberRequest, team: Team, ctx: dict[str, Any], status: int = 200) -> HttpResponse:
    shared = {
        "own_sets": TaskSet.objects.listed(team).filter(team=team),
        "max_mib": MAX_UPLOAD // MIB,
    }
    return render(request, "tasks_library/upload.html", shared | ctx, status=status)
