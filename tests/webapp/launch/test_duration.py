"""The estimator against runs that were recorded: what it says beforehand, and what came."""

import json
from datetime import timedelta
from itertools import pairwise
from zipfile import ZipFile

import pytest
from django.conf import settings
from django.utils import timezone

from testing.factories import make_experiment, make_team
from training.contracts.config import ExperimentConfig, parse_config
from training.planning.presets import load_preset
from webapp.accounts.models import Team
from webapp.analysis.costs.forecast import cost_forecast
from webapp.experiments.models import ExperimentStatus
from webapp.launch.preflight.duration import expected_duration, formula_seconds

pytestmark = pytest.mark.django_db
RECORDED = [
    (60, 6, 3, 676.0),
    (6, 4, 7, 150.0),
    (6, 6, 3, 179.2),
]
"""(steps, groups a step, families, seconds) of First desk, one after another on two shared cores: one that
learned, one with families that the model never saw, one that collapsed at its first update."""


def first_desk(steps: int = 60, groups: int = 6, **sections: dict) -> ExperimentConfig:
    values = load_preset("first-desk").config.model_dump(mode="json")
    values["algorithm"] |= {"num_steps": steps, "groups_per_step": groups}
    for name, changes in sections.items():
        values[name] |= changes
    return parse_config(values)


def finished(team: Team, config: ExperimentConfig, seconds: float) -> None:
    now = timezone.now()
    make_experiment(
        team=team,
        config=config.model_dump(mode="json"),
        status=ExperimentStatus.FINISHED,
        preset="first-desk",
        started_at=now - timedelta(seconds=seconds),
        ended_at=now,
    )


def ablation_runs() -> list[tuple[int, int, float]]:
    """(steps, evaluation tasks, seconds) of the committed runs of one machine, oldest first."""
    report = json.loads((settings.BASE_DIR / "benchmarks/results/ablation.json").read_text())
    runs = sorted(report["figures"]["runs"], key=lambda run: run["conditions"]["date"])
    machine = runs[0]["conditions"]["machine"]
    return [
        (run["budget"]["steps"], run["budget"]["tasks"], sum(run["stage_s"].values()))
        for run in runs
        if run["conditions"]["machine"] == machine
    ]


def test_what_a_run_takes_at_most_holds_for_each_recorded_run_from_those_before_it():
    team = make_team()
    for steps, groups, _, took in RECORDED:
        config = first_desk(steps, groups)
        found = expected_duration(config, team=team, preset="first-desk")
        assert took / 2 < found.seconds < found.at_most
        assert took <= found.at_most <= 6 * took
        used = cost_forecast(config, found.at_most, team).desktop_hours
        assert config.desktops.num_desktops * took / 3600 <= used
        finished(team, config, took)


def test_bound_and_range_hold_over_the_committed_runs_of_a_machine():
    team, runs, inside = make_team(), ablation_runs(), []
    assert len(runs) > 10
    for (steps, tasks, took), _ in pairwise(runs):
        config = first_desk(steps, evaluation={"num_tasks": tasks})
        found = expected_duration(config, team=team, preset="first-desk")
        assert took <= found.at_most
        inside.append(found.low <= took <= found.high)
        finished(team, config, took)
    assert sum(inside) >= 0.8 * len(inside)
    assert found.seconds == pytest.approx(took, rel=0.5)


def test_short_runs_do_not_stretch_the_estimate_of_a_long_one():
    """Four short ones, mostly start and end, and one of the same length: the like counts."""
    team = make_team()
    finished(team, first_desk(60), 676)
    for _ in range(4):
        finished(team, first_desk(2), 90)
    found = expected_duration(first_desk(60), team=team, preset="first-desk")
    assert found.seconds == pytest.approx(676)
    assert "1 finished experiment of" in found.basis


def test_a_single_run_says_less_of_the_range_than_two():
    team, config = make_team(), first_desk(60)
    widths = []
    for _ in range(2):
        finished(team, config, 676)
        found = expected_duration(config, team=team, preset="first-desk")
        widths.append(found.high / found.low)
    assert widths[0] > widths[1] > 1


def test_groups_that_may_be_sampled_beside_count_in_the_bound_alone():
    few, many = (formula(first_desk(algorithm={"max_extra_groups": extra})) for extra in (0, 6))
    assert few[0] == many[0]
    assert few[1] < many[1]


def formula(config: ExperimentConfig) -> tuple[float, float]:
    """(expected, at most) seconds."""
    return formula_seconds(config), formula_seconds(config, turns_used=1.0)


def test_the_recorded_sample_takes_no_longer_than_at_most():
    with ZipFile(settings.BASE_DIR / "webapp/samples/recording.zip") as archive:
        run = json.loads(archive.read("run.json"))["runs"][0]["experiment"]
    took = _seconds(run["ended_at"]) - _seconds(run["started_at"])
    found = expected_duration(parse_config(run["config"]), team=make_team(), preset=run["preset"])
    assert found.seconds / 3 < took <= found.at_most


def _seconds(at: str) -> float:
    return timezone.datetime.fromisoformat(at).timestamp()
