"""What is typed as a search space: read as the config reads it, refused with the line and the reason."""

import pytest

from training.contracts.config import ConfigError, ExperimentConfig
from webapp.experiments.sweep_plan import Axis, SweepPlan
from webapp.sweeps.search_space import config_of_arm, parse_axes, plan_problems

CONFIG = ExperimentConfig()
RATE = "optimiser.learning_rate"


def test_values_and_ranges_become_what_the_config_would_hold() -> None:
    text = f"{RATE} = 1e-6, 3e-6\n\nalgorithm.group_size = 4 .. 16\noptimiser.weight_decay = 1e-4 .. 0.1 log"
    assert parse_axes(text, CONFIG) == (
        Axis(path=RATE, values=(1e-6, 3e-6)),
        Axis(path="algorithm.group_size", low=4, high=16, whole=True),
        Axis(path="optimiser.weight_decay", low=1e-4, high=0.1, log=True),
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (RATE, "use section.setting"),
        ("optimiser.learning_rat = 1e-6", "did you mean optimiser.learning_rate"),
        (f"{RATE} = a, b", "= a: must be a number"),
        (f"{RATE} = 1e-6, 7", "less than or equal to 1"),
        (f"{RATE} = 1e-6, 1e-6", "twice"),
        (f"{RATE} = 1e-6\n{RATE} = 1e-5", "twice"),
        (f"{RATE} = 1e-4 .. 1e-6", "not below"),
        ("optimiser.weight_decay = 0 .. 0.1 log", "above 0"),
        ("optimiser.name = adamw .. muon", "no number"),
        ("tasks.families = menu, note", "a list"),
        ("optimiser.seed = 1, 2", "number of seeds"),
        ("algorithm.clip_high = nan", "algorithm.clip_high = nan: must be a finite number"),
        (f"{RATE} = 1e-6, nan", "= nan: must be a finite number"),
        (f"{RATE} = ,", "names no value"),
    ],
)
def test_a_refusal_says_why(text: str, reason: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_axes(text, CONFIG)
    assert reason in refused.value.problems["sweep_axes"]


def test_a_refusal_among_several_lines_names_its_line() -> None:
    with pytest.raises(ConfigError, match="line 2: there is no setting"):
        parse_axes(f"{RATE} = 1e-6\nsurprise = 3", CONFIG)


def test_an_arm_changes_its_knobs_and_its_seed_only() -> None:
    config = config_of_arm(CONFIG, {RATE: 3e-6}, seed=2)
    assert config.optimiser == CONFIG.optimiser.model_copy(update={"learning_rate": 3e-6, "seed": 2})
    assert config.model_copy(update={"optimiser": CONFIG.optimiser}) == CONFIG


def plan(text: str = f"{RATE} = 1e-6, 3e-6", **values: object) -> SweepPlan:
    return SweepPlan(axes=parse_axes(text, CONFIG), **values)


def test_a_grid_counts_its_combinations_and_experiments() -> None:
    found = plan(f"{RATE} = 1e-6, 3e-6, 1e-5\nalgorithm.clip_high = 0.2, 0.3", num_seeds=3)
    assert (found.total_arms, found.num_experiments) == (6, 18)
    assert list(plan_problems(found, CONFIG)) == []


@pytest.mark.parametrize(
    ("typed", "values", "field", "reason"),
    [
        (f"{RATE} = 1e-7 .. 1e-4", {}, "sweep_search", "grid needs listed values"),
        (f"{RATE} = 1e-7 .. 1e-4", {"search": "tpe"}, "sweep_arms", "how many arms"),
        ("", {"search": "random", "num_arms": 3}, "sweep_search", "without a knob"),
        ("", {}, "sweep_seeds", "a single experiment"),
        (f"{RATE} = 1e-6, 3e-6", {"metric": "rollout/sucess"}, "sweep_metric", "no series"),
        ("algorithm.group_size = 4, 8\noptimiser.num_processes = 1, 7", {}, "sweep_axes", "cannot run"),
    ],
)
def test_a_plan_that_cannot_run_is_named_by_its_field(
    typed: str, values: dict[str, object], field: str, reason: str
) -> None:
    assert reason in dict(plan_problems(plan(typed, **values), CONFIG))[field]


def test_a_metric_that_would_never_be_measured_is_refused() -> None:
    config = CONFIG.model_copy(update={"evaluation": CONFIG.evaluation.model_copy(update={"greedy": False})})
    assert "never measured" in dict(plan_problems(plan(), config))["sweep_metric"]
