"""The tree of a trajectory's branches, and the two wishes: keep snapshots, branch from here."""

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from training.contracts.types import Source
from webapp.accounts.access import MemberRequest
from webapp.accounts.models import Role
from webapp.fleet.models import Host
from webapp.lib.request_values import BadValue, decimal_number, whole_number
from webapp.live.event_publishing import last_seq
from webapp.trajectories.access import get_trajectory
from webapp.trajectories.models import SnapshotStatus, Trajectory
from webapp.trajectories.queries import branches as branch_queries
from webapp.trajectories.queries import snapshots as snapshot_queries
from webapp.trajectories.queries.branch_tree import count_branches, tree_of
from webapp.trajectories.services import branches, snapshots

CONFLICT, BAD = 409, 400


def branch_context(request: MemberRequest, trajectory: Trajectory) -> dict[str, Any]:
    """What `branches.html` and its dialog show."""
    branch_turn, can_be_saved = trajectory.group.branch_turn, snapshot_queries.can_be_saved(trajectory)
    if branch_turn is None and not can_be_saved:
        return {"shows_branches": False}
    found = snapshot_queries.snapshots_of(trajectory)
    kept = {turn: row for turn, row in found.items() if row.status == SnapshotStatus.KEPT}
    newest = next(reversed(kept.values()), None)
    candidates = branch_queries.candidates(trajectory)
    host = Host.objects.filter(name=newest.host).first() if newest else None
    return {
        "shows_branches": True,
        "trajectory": trajectory,
        "parent": trajectory.group.parent,
        "branch_turn": branch_turn,
        "may_branch": Role(request.membership.role).includes(Role.OPERATOR),
        "can_be_saved": can_be_saved,
        "may_switch": trajectory.status in snapshots.SWITCHABLE,
        "kept": kept,
        "kept_mb": sum(row.size_mb for row in kept.values()),
        "num_gone": len(found) - len(kept),
        "host_use": host.snapshots if host else {},
        "host_name": newest.host if newest else "",
        "num_branches": count_branches(trajectory),
        "candidates": candidates,
        "first_source": next((who.source for who in candidates if not who.problem), ""),
        "max_size": branches.MAX_SIZE,
    }


@require_safe
def show_branches(request: MemberRequest, pk: int) -> HttpResponse:
    """The viewer's line about snapshots and branches, rendered again when one of them changed."""
    trajectory = get_trajectory(request, pk)
    return render(request, "trajectories/parts/branches.html", branch_context(request, trajectory))


@require_POST
def switch_snapshots(request: MemberRequest, pk: int) -> JsonResponse:
    """Keep a snapshot before every turn from now on (`on=1`), or no more; 409 says why not."""
    trajectory = get_trajectory(request, pk, Role.OPERATOR)
    try:
        snapshots.switch_snapshots(trajectory=trajectory, on=request.POST.get("on") == "1")
    except snapshots.SnapshotsRefused as refused:
        return JsonResponse({"error": str(refused)}, status=CONFLICT)
    return JsonResponse({})


@require_POST
def branch_from_turn(request: MemberRequest, pk: int) -> JsonResponse:
    """Queue continuations of a turn; the answer says where the tree is, or which field is wrong and why."""
    trajectory = get_trajectory(request, pk, Role.OPERATOR)
    try:
        group = branches.branch_trajectory(trajectory=trajectory, request=_wanted(request), user=request.user)
    except BadValue as bad:
        return JsonResponse({"error": str(bad), "field": bad.field}, status=BAD)
    except branch_queries.BranchRefused as refused:
        status = CONFLICT if refused.field in ("turn", "source") else BAD
        return JsonResponse({"error": str(refused), "field": refused.field}, status=status)
    tree = reverse("trajectory-tree", args=[pk])
    return JsonResponse({"group": group.pk, "tree": f"{tree}#group-{group.pk}"})


def _wanted(request: HttpRequest) -> branches.BranchRequest:
    """The form's values. Raises BranchRefused, BadValue."""
    source = request.POST.get("source", Source.POLICY)
    if source not in list(Source):
        raise branch_queries.BranchRefused("source", f"{source[:20]!r} cannot continue a branch.")
    return branches.BranchRequest(
        turn=whole_number(request.POST.get("turn", ""), "turn"),
        size=whole_number(request.POST.get("size", ""), "size"),
        temperature=decimal_number(request.POST.get("temperature", "1"), "temperature"),
        source=Source(source),
    )


@require_safe
def show_tree(request: MemberRequest, pk: int) -> HttpResponse:
    """A trajectory with all its branches. The cursor is read before the rows."""
    trajectory = get_trajectory(request, pk)
    root = branch_queries.root_of(trajectory)
    ctx = {
        "trajectory": trajectory,
        "experiment": trajectory.experiment,
        "cursor": last_seq(f"trajectory.{root.pk}"),
        "tree": tree_of(trajectory),
    }
    return render(request, "trajectories/tree.html", ctx)


@require_safe
def show_tree_rows(request: MemberRequest, pk: int) -> HttpResponse:
    """The rows, rendered again when a branch was added or one of them went on."""
    trajectory = get_trajectory(request, pk)
    ctx = {"trajectory": trajectory, "tree": tree_of(trajectory)}
    return render(request, "trajectories/parts/tree.html", ctx)
