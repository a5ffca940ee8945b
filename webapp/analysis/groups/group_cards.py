"""The groups of an experiment as cards: members, rewards, advantages, and why there is nothing to learn."""

from typing import Any

from django.db.models import BooleanField, Case, Count, Exists, OuterRef, Prefetch, QuerySet, When
from django.http import HttpRequest

from training.contracts.config.algorithm import AlgorithmConfig
from training.contracts.types import Purpose, TrajectoryStatus
from webapp.analysis.groups.equal_rewards import equal_rewards_of, meaning_for
from webapp.analysis.groups.group_filters import PURPOSES, SOLVED, GroupFilter
from webapp.experiments.models import Experiment
from webapp.experiments.queries.rows_behind_resume import lost_groups
from webapp.lib.request_values import whole_number

Context = dict[str, Any]

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
    query = request.GET if tab == "groups" else {}
    shown_first = Purpose.EVALUATION if experiment.evaluates_id else Purpose.TRAIN
    chosen = GroupFilter.from_query(query, purpose="" if tab == "groups" else shown_first.value)
    lost = lost_groups()
    rows = chosen.apply(experiment.groups.filter(is_cancelled=False), experiment)
    if tab != "groups":
        rows = rows.exclude(lost)
    members_model = experiment.trajectories.model
    begun = members_model.objects.filter(group=OuterRef("pk")).exclude(status=TrajectoryStatus.QUEUED)
    rows = rows.filter(Exists(begun))
    before = request.GET.get("before", "")
    if before:
        rows = rows.filter(pk__lt=whole_number(before, "before"))
    algorithm = experiment.settings.algorithm
    rows = rows.annotate(is_lost=Case(When(lost, then=True), default=False, output_field=BooleanField()))
    found = group_cards(rows.order_by("-id")[: limit + 1], algorithm)
    shown = found[:limit]
    return {
        "groups": shown,
        "chosen": chosen,
        "purposes": [(value, label, chosen.address(purpose=value)) for value, label in PURPOSES],
        "families": experiment.groups.order_by().values_list("task__family", flat=True).distinct()
        if tab == "groups"
        else (),
        "solved_choices": SOLVED,
        "equal_rewards_mean": meaning_for(algorithm),
        "older": chosen.address(before=shown[-1]["group"].pk) if len(found) > limit else "",
        "newer": chosen.address() if before else "",
    }


def group_cards(rows: QuerySet[Any], algorithm: AlgorithmConfig) -> list[Context]:
    """What group_card.html shows of each of the groups, in their order; two queries."""
    members = rows.model.trajectories.rel.related_model.objects.only(*MEMBER_FIELDS).order_by("member", "id")
    rows = rows.select_related("task").defer("task__spec").annotate(num_replays=Count("replay_uses"))
    rows = rows.prefetch_related(Prefetch("trajectories", members))
    return [_group_card(group, algorithm) for group in rows]


def _group_card(group: Any, algorithm: AlgorithmConfig) -> Context:
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
    equal = equal_rewards_of(group, places.values(), algorithm)
    return {"group": group, "members": members, "equal": equal}
