"""The groups of an experiment as cards: members, rewards, advantages, and why there is nothing to learn."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, Exists, OuterRef, Prefetch
from django.http import HttpRequest

from training.contracts.types import Purpose, TrajectoryStatus
from webapp.experiments.models import Experiment

Context = dict[str, Any]

NO_VARIANCE = "no-variance"
GROUP_FILTERS = (
    ("", "All"),
    (Purpose.TRAIN.value, "Training"),
    (NO_VARIANCE, "No variance"),
    (Purpose.EVALUATION.value, "Evaluation"),
    (Purpose.DEMONSTRATION.value, "Demonstration"),
)
"""What the tab's links show: groups of a purpose, or those of training that teach nothing."""
NUM_GROUPS = 24
NUM_GROUPS_OVERVIEW = 6
MEMBER_FIELDS = (
    "id",
    "group_id",
    "member",
    "status",
    "score",
    "reward",
    "advantage",
    "source",
    "num_turns",
    "retry_of_id",
)
"""Of a trajectory, on the card of its group."""
ADVANTAGE_SCALE = 2.5
"""Advantage at which a bar is full."""


def groups(experiment: Experiment, request: HttpRequest) -> Context:
    """Groups of which a member has begun, newest first, with their members' rewards and advantages."""
    tab = request.GET.get("tab", "overview")
    limit = NUM_GROUPS if tab == "groups" else NUM_GROUPS_OVERVIEW
    purpose = request.GET.get("purpose", "train" if tab != "groups" else "")
    rows = experiment.groups.filter(is_cancelled=False)
    if purpose == NO_VARIANCE:
        rows = rows.without_variance().filter(purpose=Purpose.TRAIN)
    elif purpose:
        rows = rows.filter(purpose=purpose)
    members_model = experiment.trajectories.model
    begun = members_model.objects.filter(group=OuterRef("pk")).exclude(status=TrajectoryStatus.QUEUED)
    rows = rows.filter(Exists(begun))
    before = request.GET.get("before", "")
    if before.isdecimal():
        rows = rows.filter(pk__lt=int(before))
    members = members_model.objects.only(*MEMBER_FIELDS).order_by("member", "id")
    rows = rows.select_related("task").defer("task__spec").annotate(num_replays=Count("replay_uses"))
    found = list(rows.order_by("-id").prefetch_related(Prefetch("trajectories", members))[: limit + 1])
    shown = found[:limit]
    return {
        "groups": [_group_card(group) for group in shown],
        "purpose": purpose,
        "filters": GROUP_FILTERS,
        "older": f"?tab=groups&purpose={purpose}&before={shown[-1].pk}" if len(found) > limit else "",
        "newer": f"?tab=groups&purpose={purpose}" if before else "",
    }


def _group_card(group: Any) -> Context:
    """Members in their places: an errored try is shown only where no later try took the place."""
    places = {member.member: member for member in group.trajectories.all()}
    members = [
        {
            "trajectory": member,
            "bar": min(1.0, abs(member.advantage) / ADVANTAGE_SCALE) * 50 if member.advantage else 0,
            "is_negative": (member.advantage or 0) < 0,
        }
        for _, member in sorted(places.items())
    ]
    scores = [member.score for member in places.values()]
    return {"group": group, "members": members, "no_variance": group.why_no_variance(scores)}
