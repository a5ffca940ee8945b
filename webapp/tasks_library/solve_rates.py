"""How a task went: per experiment, purpose and step."""

from collections import defaultdict
from dataclasses import dataclass

from django.db.models import Avg, Count

from training.contracts.types import Purpose, Source
from webapp.experiments.models import Experiment, TaskRecord
from webapp.tasks_library.flags import scored

MAX_EXPERIMENTS = 20
MAX_BARS = 40
PURPOSES = (Purpose.TRAIN, Purpose.EVALUATION)


@dataclass(frozen=True, slots=True)
class Bar:
    """The tries of some steps."""

    first: int
    last: int
    num: int
    mean: float
    """Of scores."""

    @property
    def percent(self) -> float:
        return 100 * self.mean


@dataclass(frozen=True, slots=True)
class Course:
    """One experiment's tries of one purpose, in the order of its steps."""

    experiment: Experiment
    purpose: str
    num: int
    mean: float
    bars: list[Bar]


def courses_of(task: TaskRecord, team_id: int) -> list[Course]:
    """The newest experiments that tried the task."""
    rows = scored(team_id).filter(task=task, source=Source.POLICY, purpose__in=PURPOSES)
    by_step = rows.order_by("experiment_id", "purpose", "step").values_list(
        "experiment_id", "purpose", "step"
    )
    steps = by_step.annotate(num=Count("pk"), mean=Avg("score"))
    found: dict[tuple[int, str], list[Bar]] = defaultdict(list)
    for experiment_id, purpose, step, num, mean in steps:
        if experiment_id is not None:
            found[experiment_id, purpose].append(Bar(step, step, num, mean))
    newest = sorted({pk for pk, _ in found}, reverse=True)[:MAX_EXPERIMENTS]
    experiments = Experiment.objects.defer("config").in_bulk(newest)
    return [
        _course(experiments[pk], purpose, found[pk, purpose])
        for pk in newest
        for purpose in PURPOSES
        if (pk, purpose) in found
    ]


def _course(experiment: Experiment, purpose: str, bars: list[Bar]) -> Course:
    whole = _joined(bars)
    size = -(-len(bars) // MAX_BARS)
    shown = [_joined(bars[start : start + size]) for start in range(0, len(bars), size)]
    return Course(experiment, purpose, whole.num, whole.mean, shown)


def _joined(bars: list[Bar]) -> Bar:
    num = sum(bar.num for bar in bars)
    return Bar(bars[0].first, bars[-1].last, num, sum(bar.num * bar.mean for bar in bars) / num)
