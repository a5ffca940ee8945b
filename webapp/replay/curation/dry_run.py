"""What a policy would do, before it does it: entries, tasks, ratios, and the share of a step."""

from dataclasses import dataclass
from statistics import quantiles

from training.contracts.outcome import SuccessRule
from training.rewards.success_rule import success_rule
from webapp.accounts.models import Team
from webapp.experiments.models import Experiment, TaskRecord
from webapp.replay.queries.rules import Admission, Rules, admit
from webapp.replay.queries.sorting import Surroundings
from webapp.replay.queries.task_rates import Rate, recent_rates

RATIO_EDGES = (0.0, 0.2, 0.5, 0.8, 1.25, 2.0, 5.0)
"""Bars of the distribution; the last one has no end."""


@dataclass(frozen=True, slots=True)
class Bar:
    """Entries whose mean ratio lies from `low` to below `high`."""

    low: float
    high: float | None
    num: int


@dataclass(frozen=True, slots=True)
class Share:
    """What a step of the target experiment would be made of, as its tasks go now."""

    failed_groups: float
    """Of a step: every member fails, and an entry of the task is there."""
    injected: float
    """Entries that enter a step, within replay.max_share and one for each failed group."""
    share: float
    """Of the trajectories that the step trains on."""
    num_tasks: int
    """Train tasks whose rate is known; the others are left out of the estimate."""


@dataclass(frozen=True, slots=True)
class DryRun:
    """The answer of the policies page."""

    admission: Admission
    target: Experiment | None
    num_tasks: int
    """Train tasks of the target's task set; of all sets without a target."""
    num_covered: int
    """Of these."""
    bars: list[Bar]
    num_measured: int
    median_ratio: float | None
    share: Share | None
    """None where the target has not tried its tasks."""

    @property
    def reasons(self) -> list[tuple[str, int]]:
        """(why entries stay out, how many), the most frequent first."""
        return self.admission.left_out.most_common()

    @property
    def num_entering(self) -> int:
        return len(self.admission.entering)


def dry_run(team: Team, rules: Rules) -> DryRun:
    """Apply `rules` to the buffer as it is, for the team's newest experiment. About eight queries."""
    around = Surroundings(team.pk)
    admission = admit(team, rules, around)
    tasks = _train_tasks(around.target)
    measured = [admission.ratios[facts.pk] for facts in admission.entering if facts.pk in admission.ratios]
    return DryRun(
        admission=admission,
        target=around.target,
        num_tasks=len(tasks),
        num_covered=len(admission.tasks & tasks),
        bars=bars_of(measured),
        num_measured=len(measured),
        median_ratio=_median(measured),
        share=_share(team, around.target, tasks, admission.tasks),
    )


def _train_tasks(target: Experiment | None) -> set[int]:
    rows = TaskRecord.objects.filter(split="train")
    if target is not None:
        config = target.settings.tasks
        rows = rows.filter(task_set__name=config.task_set)
        if config.families:
            rows = rows.filter(family__in=config.families)
    return set(rows.order_by().values_list("pk", flat=True))


def bars_of(ratios: list[float]) -> list[Bar]:
    """How many lie between the edges."""
    ends = [*RATIO_EDGES[1:], None]
    return [
        Bar(low, high, sum(low <= ratio and (high is None or ratio < high) for ratio in ratios))
        for low, high in zip(RATIO_EDGES, ends, strict=True)
    ]


def _median(values: list[float]) -> float | None:
    if len(values) < 2:
        return values[0] if values else None
    return quantiles(values, n=2)[0]


def _share(team: Team, target: Experiment | None, tasks: set[int], covered: set[int]) -> Share | None:
    if target is None:
        return None
    rates = {task: rate for task, rate in recent_rates(team.pk, target.pk).items() if task in tasks}
    if not rates:
        return None
    config = target.settings
    return expected_share(
        rates,
        covered,
        group_size=config.algorithm.group_size,
        groups_per_step=config.algorithm.groups_per_step,
        max_share=config.replay.max_share,
        rule=success_rule(config.algorithm, config.rewards),
    )


def expected_share(
    rates: dict[int, Rate],
    covered: set[int],
    *,
    group_size: int,
    groups_per_step: int,
    max_share: float,
    rule: SuccessRule,
) -> Share:
    """With tries that succeed independently at their task's rate, and tasks that come up equally often.

    A group fails as a whole with (1 - p) ** size, and is trained on without help unless all of it fails or
    all succeeds.
    """
    failing = trained = 0.0
    for task, rate in rates.items():
        solved = rate.share_by(rule)
        all_fail, all_solve = (1 - solved) ** group_size, solved**group_size
        trained += 1 - all_fail - all_solve
        failing += all_fail if task in covered else 0.0
    failed_groups = groups_per_step * failing / len(rates)
    trained_groups = groups_per_step * trained / len(rates)
    members = group_size * (trained_groups + failed_groups)
    injected = min(failed_groups, max_share * members)
    share = injected / members if members else 0.0
    return Share(failed_groups, injected, share, len(rates))
