"""The search of our own rows by Optuna: no value twice, TPE near what was good, hopeless arms named."""

from training.contracts.config import ExperimentConfig
from webapp.experiments.models import ArmStatus
from webapp.experiments.sweep_plan import SweepPlan
from webapp.sweeps.optuna_study import TrialFacts, is_hopeless, suggest
from webapp.sweeps.search_space import parse_axes

RATE, CLIP = "optimiser.learning_rate", "algorithm.clip_high"


def plan(text: str, **values: object) -> SweepPlan:
    return SweepPlan(axes=parse_axes(text, ExperimentConfig()), **values)


def run(search: SweepPlan, number: int, judge=lambda values: 0.0, status=ArmStatus.FINISHED):
    """`number` arms one after the other, each judged before the next begins."""
    trials: list[TrialFacts] = []
    for place in range(1, number + 1):
        found = suggest(search, trials)
        trials.append(
            TrialFacts(
                number=place,
                status=status,
                values=found.values,
                sampler_notes=found.sampler_notes,
                objective=judge(found.values),
            )
        )
    return trials


def test_a_grid_visits_every_combination_once_also_while_arms_run() -> None:
    search = plan(f"{RATE} = 1e-6, 3e-6, 1e-5\n{CLIP} = 0.2, 0.3")
    trials: list[TrialFacts] = []
    for number in range(1, 7):
        found = suggest(search, trials)
        trials.append(
            TrialFacts(
                number=number,
                status=ArmStatus.RUNNING,
                values=found.values,
                sampler_notes=found.sampler_notes,
            )
        )
    assert len({tuple(sorted(one.values.items())) for one in trials}) == 6


def test_seeds_alone_are_one_arm_without_values() -> None:
    assert suggest(plan("", num_seeds=3), []).values == {}


def test_random_arms_differ_lie_in_the_range_and_are_the_same_again() -> None:
    search = plan(f"{RATE} = 1e-7 .. 1e-4 log", search="random", num_arms=8)
    values = [one.values[RATE] for one in run(search, 8)]
    assert len(set(values)) == 8
    assert all(1e-7 <= value <= 1e-4 for value in values)
    assert values == [one.values[RATE] for one in run(search, 8)]


def test_tpe_comes_nearer_to_the_best_than_random_does() -> None:
    def judge(values) -> float:
        return -abs(values[CLIP] - 0.33)

    def mean_of_last(search: str) -> float:
        found = run(plan(f"{CLIP} = 0.1 .. 0.9", search=search, num_arms=24), 24, judge)
        return sum(one.objective for one in found[-12:]) / 12

    assert mean_of_last("tpe") > mean_of_last("random") + 0.05


def trial(number: int, curve: dict[int, float], status: ArmStatus = ArmStatus.FINISHED) -> TrialFacts:
    done = curve[max(curve)] if status == ArmStatus.FINISHED else None
    return TrialFacts(
        number=number, status=status, values={CLIP: 0.2 + number / 100}, objective=done, curve=curve
    )


def test_an_arm_below_the_median_after_the_warm_up_is_hopeless() -> None:
    search = plan(f"{CLIP} = 0.1 .. 0.9", search="random", num_arms=9, warmup_steps=3)
    finished = [trial(number, {1: 0.2, 3: 0.5, 5: 0.7}) for number in (1, 2, 3)]
    bad = trial(4, {1: 0.1, 3: 0.2}, ArmStatus.RUNNING)
    good = trial(5, {1: 0.1, 3: 0.6}, ArmStatus.RUNNING)
    early = trial(6, {1: 0.0}, ArmStatus.RUNNING)
    trials = [*finished, bad, good, early]
    assert [is_hopeless(search, trials, number) for number in (4, 5, 6)] == [True, False, False]


def test_lower_is_better_when_the_plan_says_so() -> None:
    search = plan(f"{CLIP} = 0.1 .. 0.9", search="random", num_arms=9, warmup_steps=0, direction="minimise")
    trials = [trial(1, {1: 0.5}), trial(2, {1: 0.5}), trial(3, {1: 0.9}, ArmStatus.RUNNING)]
    assert is_hopeless(search, trials, 3)
