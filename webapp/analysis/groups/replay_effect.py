"""What replay did to a run: success of each task before and after its first injection, and of each family."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, Min

from training.contracts.types import Purpose, Source
from webapp.experiments.models import Experiment
from webapp.experiments.queries.outcomes import solved_by_agent
from webapp.experiments.queries.rows_behind_resume import lost_trajectories

MAX_TASKS = 40
"""With the most injections."""
WINDOW = 20
"""Newest steps that are the end of a run."""


@dataclass(slots=True)
class Rate:
    """Rollouts, and those that solved their task."""

    num: int = 0
    solved: int = 0

    def add(self, num: int, solved: int) -> None:
        self.num += num
        self.solved += solved

    @property
    def share(self) -> float | None:
        return self.solved / self.num if self.num else None


@dataclass(slots=True)
class Row:
    """A task or a family around the first injection."""

    name: str
    injections: int = 0
    first_step: int = 0
    before: Rate = field(default_factory=Rate)
    after: Rate = field(default_factory=Rate)
    held_out: tuple[float, float] | None = None
    """Of a family: sampled held-out success of the first and the newest evaluation."""

    @property
    def change(self) -> float | None:
        before, after = self.before.share, self.after.share
        return None if before is None or after is None else after - before

    @property
    def held_out_change(self) -> float | None:
        return None if self.held_out is None else self.held_out[1] - self.held_out[0]


@dataclass(frozen=True, slots=True)
class ReplayEffect:
    num_injections: int
    num_tasks: int
    """With an injection; `tasks` may be fewer."""
    tasks: list[Row]
    families: list[Row]
    """Those without an injection paid the price, if there is one."""


def replay_effect(experiment: Experiment) -> ReplayEffect:
    """Five queries. What came in the step of an injection was sampled before it."""
    uses: Any = experiment.replay_uses  # type: ignore[attr-defined]
    found = uses.order_by().values("group__task", "group__task__task_id", "group__task__family")
    injected = list(found.annotate(num=Count("id"), first=Min("step")).order_by("-num", "group__task"))
    shown = {row["group__task"]: row for row in injected[:MAX_TASKS]}
    return ReplayEffect(
        num_injections=sum(row["num"] for row in injected),
        num_tasks=len(injected),
        tasks=_tasks(experiment, shown) if shown else [],
        families=_families(experiment, injected) if injected else [],
    )


def _tasks(experiment: Experiment, shown: dict[int, dict[str, Any]]) -> list[Row]:
    rows = {
        key: Row(one["group__task__task_id"], injections=one["num"], first_step=one["first"])
        for key, one in shown.items()
    }
    for task, step, num, solved in _counts(experiment.trajectories.filter(task__in=shown), "task"):
        row = rows[task]
        (row.before if step <= row.first_step else row.after).add(num, solved)
    return list(rows.values())


def _families(experiment: Experiment, injected: Iterable[dict[str, Any]]) -> list[Row]:
    uses: Counter[str] = Counter()
    for one in injected:
        uses[one["group__task__family"]] += one["num"]
    first = min(one["first"] for one in injected)
    counts = list(_counts(experiment.trajectories.all(), "family"))
    newest = max((step for _, step, _, _ in counts), default=0)
    rows: defaultdict[str, Row] = defaultdict(lambda: Row(""))
    for family, step, num, solved in counts:
        row = rows[family]
        if step <= first:
            row.before.add(num, solved)
        elif step > newest - WINDOW:
            row.after.add(num, solved)
    for family, pair in _held_out(experiment).items():
        rows[family].held_out = pair
    for family, row in rows.items():
        row.name, row.injections, row.first_step = family, uses[family], first
    return sorted(rows.values(), key=lambda row: (-row.injections, row.name))


def _counts(rows: Any, by: str) -> Iterable[tuple[Any, int, int, int]]:
    """(task or family, step, scored rollouts, solved ones) of the policy."""
    rows = rows.filter(purpose=Purpose.TRAIN, source=Source.POLICY, score__isnull=False)
    rows = rows.exclude(lost_trajectories()).order_by().values_list(by, "step")
    return rows.annotate(num=Count("id"), solved=Count("id", filter=solved_by_agent()))


def _held_out(experiment: Experiment) -> dict[str, tuple[float, float]]:
    looks = [one for one in experiment.evaluations.order_by("id") if (one.temperature or 0) > 0]
    if len(looks) < 2:
        return {}
    first, last = looks[0].solved_by_family, looks[-1].solved_by_family
    return {name: (first[name], last[name]) for name in first.keys() & last.keys()}
