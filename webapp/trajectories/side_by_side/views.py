"""A task in two evaluations: both trajectories from the first turn at which they differ."""

from collections import defaultdict
from dataclasses import dataclass, field

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from training.contracts.outcome import Outcome
from webapp.accounts.access import member
from webapp.analysis.evaluations.stamps import measured_otherwise
from webapp.analysis.evaluations.success_pairs import TaskOutcomes, task_outcomes
from webapp.experiments.models import Evaluation, TaskRecord
from webapp.lib.request_values import row_id
from webapp.trajectories.alignment import align
from webapp.trajectories.models import Trajectory, TurnRecord
from webapp.trajectories.side_by_side.shown_turns import shown_rows

MAX_TURNS = 200
"""Of each trajectory; the viewer has them all."""


@dataclass(slots=True)
class Side:
    """One evaluation of the task."""

    evaluation: Evaluation
    members: list[Trajectory] = field(default_factory=list)
    shown: Trajectory | None = None

    @property
    def solved(self) -> list[Trajectory]:
        return [one for one in self.members if one.outcome is Outcome.SOLVED]

    @property
    def failed(self) -> list[Trajectory]:
        return [one for one in self.members if one.outcome is not Outcome.SOLVED]


@require_safe
def task_side_by_side(request: HttpRequest, before: int, after: int, task_pk: int) -> HttpResponse:
    """`?left=12&right=19` chooses the trajectories; else two whose outcomes differ, when there are such."""
    team = member(request).team
    rows = Evaluation.objects.filter(pk__in={before, after}, experiment__team=team)
    found = rows.select_related("experiment", "checkpoint").defer("experiment__config").in_bulk()
    if not found.keys() >= {before, after}:
        raise Http404("No such evaluation in your team.")
    task = get_object_or_404(TaskRecord.objects.of(team), pk=task_pk)
    sides = _sides([found[before], found[after]], task)
    _choose(sides, [row_id(request.GET.get(name, "")) for name in ("left", "right")])
    shown = [side.shown for side in sides if side.shown]
    turns = _turns([one.pk for one in shown])
    alignment = align([turns[one.pk] for one in shown])
    ctx = {
        "task": task,
        "sides": sides,
        "divergence": alignment.divergence,
        "shared": shown_rows(alignment.shared(MAX_TURNS)),
        "parted": shown_rows(alignment.parted(MAX_TURNS)),
        "max_turns": MAX_TURNS,
        "unlike": measured_otherwise([found[before], found[after]]),
        "others": _at_other_temperature(found[before], found[after]),
    }
    return render(request, "trajectories/side_by_side.html", ctx)


def _sides(evaluations: list[Evaluation], task: TaskRecord) -> list[Side]:
    """Each with the scored trajectories of its group."""
    outcomes = task_outcomes(evaluations)
    groups = [_group_of(outcomes, evaluation, task) for evaluation in evaluations]
    scored = Trajectory.objects.filter(group_id__in=groups, score__isnull=False).defer(
        "terms", "checks", "parking"
    )
    members: dict[int, list[Trajectory]] = defaultdict(list)
    for one in scored.order_by("member", "id"):
        members[one.group_id].append(one)
    return [
        Side(evaluation, members[group] if group else [])
        for evaluation, group in zip(evaluations, groups, strict=True)
    ]


def _group_of(outcomes: TaskOutcomes, evaluation: Evaluation, task: TaskRecord) -> int:
    outcome = outcomes.get(evaluation.pk, {}).get(task.task_id)
    return outcome[2] if outcome else 0


def _choose(sides: list[Side], wanted: list[int | None]) -> None:
    """The wanted trajectories, else the first whose outcomes differ, else the first ones."""
    left, right = sides
    differing = [
        (good[0], bad[0])
        for good, bad in ((left.solved, right.failed), (left.failed, right.solved))
        if good and bad
    ]
    defaults = (
        differing[0] if differing else tuple(side.members[0] if side.members else None for side in sides)
    )
    for side, pk, default in zip(sides, wanted, defaults, strict=True):
        side.shown = next((one for one in side.members if one.pk == pk), default)


def _turns(trajectory_ids: list[int]) -> dict[int, list[TurnRecord]]:
    """Trajectory -> its first turns, with what the page says of each; completions are not read."""
    found: dict[int, list[TurnRecord]] = defaultdict(list)
    rows = TurnRecord.objects.filter(trajectory_id__in=trajectory_ids, index__lt=MAX_TURNS)
    for turn in rows.defer("completion", "terms").order_by("trajectory_id", "index"):
        found[turn.trajectory_id].append(turn)
    return found


def _at_other_temperature(before: Evaluation, after: Evaluation) -> tuple[Evaluation, Evaluation] | None:
    """The same points, greedy instead of sampled or the reverse."""

    def other(evaluation: Evaluation) -> Evaluation | None:
        rows = Evaluation.objects.filter(
            experiment=evaluation.experiment_id, name=evaluation.name, step=evaluation.step
        )
        return rows.exclude(pk=evaluation.pk).first()

    first, last = other(before), other(after)
    return (first, last) if first and last else None
