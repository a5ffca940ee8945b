"""The trajectory list, the viewer, and the side-by-side page of a group."""

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import SavedView
from webapp.accounts.queries.saved_views import hidden_columns, view_menu
from webapp.accounts.services.audit_log import log_viewing
from webapp.analysis.groups.equal_rewards import equal_rewards_of
from webapp.experiments.models import TaskRecord
from webapp.experiments.queries.experiment_choices import newest_and
from webapp.experiments.queries.rows_behind_resume import lost_groups
from webapp.lib.keyset_pages import paginate
from webapp.lib.request_values import whole_number, whole_numbers
from webapp.live.event_publishing import last_seq
from webapp.trajectories.access import get_group, get_trajectory, note_viewing
from webapp.trajectories.branch_views import branch_context
from webapp.trajectories.filters import CHOICES, DEFAULT_SORT, SORTS, TrajectoryFilter
from webapp.trajectories.models import Group, Trajectory
from webapp.trajectories.queries import group_lanes, trajectories
from webapp.trajectories.queries.turn_credit import Stretch, credit_of
from webapp.trajectories.side_by_side.group_turns import group_turns
from webapp.trajectories.token_display import least_certain, tokens
from webapp.trajectories.viewer_parts import (
    coordinate_space,
    end_frame,
    first_page,
    milestone_lane,
    render_turns,
    reward_context,
    shows_texts,
    texts_of,
)

MAX_TOKENS_AT_ONCE = 800
"""More would make an answer of megabytes."""
SPEEDS = ((1, 1), (2, 2), (3, 4), (4, 8))
"""Key -> turns per second, as in static/js/trajectories/player_state.js."""
NUM_EXPERIMENT_CHOICES = 50
MIN_GROUP_CELLS, MAX_GROUP_CELLS = 8, 96
"""Turns of each member, and of all members, that the group page shows as pictures."""
SORT_HEADS = (("score", "Score"), ("reward", "Reward"), ("advantage", "Advantage"))
COLUMNS = {
    "status": "Status",
    "turns": "Turns",
    **dict(SORT_HEADS),
    "source": "Source",
    "experiment": "Experiment",
    "when": "When",
}
"""Columns that a person may hide: name in the URL -> label."""


@require_safe
def trajectory_list(request: MemberRequest) -> HttpResponse:
    """Newest first, narrowed by what stands in the URL."""
    team = member(request).team
    team_id = team.pk
    chosen = TrajectoryFilter.from_query(request.GET)
    rows = chosen.apply(trajectories.list_rows(team_id))
    page = paginate(rows, request.GET, sorts=SORTS, default=DEFAULT_SORT, noun="trajectories")
    trajectories.list_cursors(page.rows)
    experiments = newest_and(chosen.experiment, team_id=team_id, limit=NUM_EXPERIMENT_CHOICES)
    named = TaskRecord.objects.of(team_id).exclude(family="").order_by("family")
    families = named.values_list("family", flat=True)
    ctx = {
        "page": page,
        "chosen": chosen,
        "choices": CHOICES,
        "sort_heads": SORT_HEADS,
        "families": families.distinct(),
        "scanners": [(str(row.pk), str(row)) for row in team.scanners.only("name", "version", "team")],
        "hidden": hidden_columns(request.GET, COLUMNS),
        "views": view_menu(request, SavedView.Page.TRAJECTORIES, COLUMNS),
        "experiments": [(str(pk), name) for pk, name in experiments.values_list("pk", "name")],
    }
    return render(request, "trajectories/list.html", ctx)


@require_safe
def trajectory_detail(request: MemberRequest, pk: int) -> HttpResponse:
    """The viewer. The stream's cursor is read before the rows: an event between is repeated, not missed."""
    cursor = last_seq(f"trajectory.{pk}")
    trajectory = get_trajectory(request, pk)
    note_viewing(request.user, trajectory)
    turns = first_page(trajectory)
    group = watched_group(request, trajectory)
    lane = None if group_lanes.has_long_lane(group) else group_lanes.group_lane(group, trajectory.pk)
    previous_group, next_group = group_lanes.neighbour_groups(group)
    end = end_frame(trajectory, turns.turns)
    entries = trajectories.replay_entries_of(trajectory)
    ctx = {
        "speeds": SPEEDS,
        "trajectory": trajectory,
        "group": group,
        "experiment": group.experiment,
        "cursor": cursor,
        "cells": turns.cells(),
        "cards": turns.cards(),
        "player": {
            "turns": turns.player_turns(coordinate_space(trajectory)),
            "rest": turns.rest(),
            "isFinal": trajectory.is_final,
            "endFrame": end,
        },
        "end_frame": end,
        "shows_texts": shows_texts(trajectory, turns),
        "lane": lane,
        "previous_group": previous_group,
        "next_group": next_group,
        "entries": [(one, trajectories.replay_uses_of(one)) for one in entries],
        "findings": trajectory.findings.filter(outcome="found").select_related("scanner"),
        **reward_context(trajectory, turns.turns, credit_of(group).get(trajectory.pk, ()) if lane else ()),
        **branch_context(request, trajectory),
    }
    return render(request, "trajectories/detail.html", ctx)


def watched_group(request: HttpRequest, trajectory: Trajectory) -> Group:
    """The trajectory's own group, or the one of `?group=` into which it was injected as a replay entry."""
    wanted = request.GET.get("group", "")
    if wanted and wanted != str(trajectory.group_id):
        group = get_group(request, whole_number(wanted, "group"))
        if group.replay_uses.filter(entry__trajectory=trajectory).exists():
            return group
    return trajectory.group


@require_safe
def trajectory_turns(request: HttpRequest, pk: int) -> HttpResponse:
    """JSON of some turns (`?indexes=3,4`) or of all from one on (`?after=2`), with their HTML."""
    trajectory = get_trajectory(request, pk)
    rows = trajectory.turns.order_by("index")
    indexes = whole_numbers(request.GET.get("indexes", ""), "indexes", at_most=50)
    if indexes:
        rows = rows.filter(index__in=indexes)
    return JsonResponse({"turns": render_turns(request, trajectory, list(rows[:200]))})


@require_safe
def turn_completion(request: HttpRequest, pk: int, index: int) -> HttpResponse:
    """JSON of what a turn's card leaves out: its whole texts (`?texts=1`), or its tokens `?from=` one on."""
    turn = get_object_or_404(get_trajectory(request, pk).turns, index=index)
    if request.GET.get("texts"):
        return JsonResponse({"texts": texts_of(turn)})
    first = whole_number(request.GET.get("from", "") or "0", "from")
    found = tokens(turn.completion)
    shown = found[first : first + MAX_TOKENS_AT_ONCE]
    num_left = max(0, len(found) - first - len(shown))
    html = render_to_string("trajectories/parts/tokens.html", {"tokens": shown})
    least = least_certain(found)
    answer: dict[str, Any] = {
        "tokens": html,
        "next": first + len(shown) if num_left else None,
        "left": num_left,
    }
    if least is not None:
        answer["least"] = {name: least[name] for name in ("place", "text", "probability")}
    return JsonResponse(answer)


@require_safe
def trajectory_status(request: HttpRequest, pk: int) -> HttpResponse:
    """The list's status cell, rendered again when the trajectory changed."""
    return render(request, "trajectories/parts/status.html", {"trajectory": get_trajectory(request, pk)})


@require_safe
def trajectory_summary(request: HttpRequest, pk: int) -> HttpResponse:
    """JSON with the HTML of what changes apart from turns: figures and reward breakdown."""
    trajectory = get_trajectory(request, pk)
    turns = trajectories.brief_turns(trajectory)
    ctx: dict[str, Any] = {
        **reward_context(trajectory, turns, _credit(trajectory)),
        "group": trajectory.group,
        "experiment": trajectory.experiment,
        "end_frame": end_frame(trajectory, turns),
    }
    return JsonResponse(
        {
            "figures": render(request, "trajectories/parts/figures.html", ctx).content.decode(),
            "waiting": render(request, "trajectories/parts/waiting.html", ctx).content.decode(),
            "reward": render(request, "trajectories/parts/reward.html", ctx).content.decode(),
            "milestones": render_to_string("trajectories/parts/milestones.html", milestone_lane(trajectory)),
            "endCell": render(request, "trajectories/parts/end_cell.html", ctx).content.decode(),
            "isFinal": trajectory.is_final,
            "endFrame": ctx["end_frame"],
            "numTurns": len(turns),
        }
    )


def _credit(trajectory: Trajectory) -> Sequence[Stretch]:
    """Of what has ended; a long group's is on its own page alone."""
    if not trajectory.is_final or group_lanes.has_long_lane(trajectory.group):
        return ()
    return credit_of(trajectory.group).get(trajectory.pk, ())


@require_safe
def group_lane(request: HttpRequest, pk: int) -> HttpResponse:
    """The lane partial, fetched again when a sibling changed."""
    group = get_group(request, pk)
    watched, first = request.GET.get("watched", ""), request.GET.get("first", "")
    lane = group_lanes.group_lane(
        group,
        whole_number(watched, "watched") if watched else None,
        first=whole_number(first or "0", "first"),
    )
    return render(request, "trajectories/parts/lane.html", {"lane": lane, "group": group})


@require_safe
def group_detail(request: MemberRequest, pk: int) -> HttpResponse:
    """Members side by side: final screens, rewards, advantages, breakdowns."""
    group = get_group(request, pk)
    num_shown = max(MIN_GROUP_CELLS, MAX_GROUP_CELLS // max(1, group.trajectories.count()))
    lane = group_lanes.group_lane(group, None, num_shown=num_shown)
    credit = credit_of(group)
    rewards = {row.trajectory.reward for row in lane.rows if row.trajectory.reward is not None}
    if any(not row.trajectory.is_final for row in lane.rows):
        log_viewing(person=request.user, team=group.team_id, kind="group", object_id=pk, how="group")
    ctx = {
        "group": group,
        "experiment": group.experiment,
        "is_lost": Group.objects.filter(lost_groups(), pk=pk).exists(),
        "lane": lane,
        "columns": [
            (row, reward_context(row.trajectory, [], credit.get(row.trajectory.pk, ()))) for row in lane.rows
        ],
        "turns": group_turns(lane, first=whole_number(request.GET.get("from", "") or "0", "from")),
        "equal": equal_rewards_of(
            group,
            [row.trajectory for row in lane.rows],
            group.experiment.settings.algorithm if group.experiment else None,
        ),
        "best_reward": max(rewards) if len(rewards) > 1 else None,  # where all are alike, none is best
    }
    return render(request, "trajectories/group.html", ctx)
