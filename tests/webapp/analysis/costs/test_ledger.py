"""Costs of recorded facts: hours, tokens, shares; what was not recorded stays unknown."""

from datetime import timedelta

import pytest
from django.utils import timezone

from testing.factories import (
    make_experiment,
    make_group,
    make_replay_entry,
    make_team,
    make_trajectory,
    make_user,
)
from testing.fleet_rows import make_worker
from training.contracts.config import ExperimentConfig
from training.contracts.types import Action, ActionKind, Completion, Observation, Source, Turn
from webapp.accounts.models import Role
from webapp.analysis.costs.cost_rows import cost_rows
from webapp.analysis.costs.forecast import cost_forecast
from webapp.analysis.costs.ledger import Cost, costs_of, total_of, usage_of
from webapp.experiments.models import Attempt, Experiment, TeamPrices
from webapp.experiments.queries.prices import prices_of
from webapp.trajectories.models import Trajectory
from webapp.trajectories.services.turns import close_turn, open_turn

pytestmark = pytest.mark.django_db


def attempt(experiment: Experiment, hours: float, num_gpus: int | None) -> None:
    now = timezone.now()
    row = experiment.attempts.create(number=experiment.attempts.count() + 1, worker_name="gpu@h")
    started_at = now - timedelta(hours=hours)
    Attempt.objects.filter(pk=row.pk).update(started_at=started_at, ended_at=now, num_gpus=num_gpus)


def trajectory(
    experiment: Experiment, *, reward: float = 0.0, minutes: float = 6, **values: object
) -> Trajectory:
    now = timezone.now()
    tokens = {"num_prompt_tokens": 1000, "num_completion_tokens": 50}
    return make_trajectory(
        group=make_group(experiment=experiment),
        reward=reward,
        **{"started_at": now - timedelta(minutes=minutes), "ended_at": now, **tokens, **values},
    )


def cost_of(experiment: Experiment) -> Cost:
    return costs_of(prices_of(experiment.team), [experiment.pk])[experiment.pk]


def test_hours_and_tokens_are_summed_over_attempts_and_trajectories() -> None:
    experiment = make_experiment()
    attempt(experiment, 2, num_gpus=4)
    attempt(experiment, 1, num_gpus=1)
    solved = trajectory(experiment, reward=1.0)
    trajectory(experiment)
    make_replay_entry(trajectory=solved, verdict="gold")
    cost = cost_of(experiment)
    assert cost.gpu_hours == pytest.approx(9, abs=0.01)
    assert cost.worker_hours == pytest.approx(3, abs=0.01)
    assert cost.desktop_hours == pytest.approx(0.2, abs=0.001)
    assert (cost.prompt_tokens, cost.completion_tokens) == (2000, 100)
    assert (cost.num_solved, cost.num_accepted, cost.num_trajectories) == (1, 1, 2)


def test_money_is_shared_over_what_was_solved() -> None:
    experiment = make_experiment()
    TeamPrices.objects.create(team=experiment.team, gpu_hour=2.0, million_prompt_tokens=500)
    attempt(experiment, 1, num_gpus=1)
    for _ in range(2):
        trajectory(experiment, reward=1.0)
    cost = cost_of(experiment)
    assert cost.money == pytest.approx(3.0, abs=0.01)
    assert cost.per_solved is not None
    assert cost.per_solved.money == pytest.approx(1.5, abs=0.01)
    assert cost.per_accepted is None


@pytest.mark.parametrize("lacking", ["gpus", "tokens"])
def test_what_was_not_recorded_is_unknown_and_makes_no_sum(lacking: str) -> None:
    experiment = make_experiment()
    TeamPrices.objects.create(team=experiment.team, gpu_hour=2.0, million_completion_tokens=1)
    attempt(experiment, 1, num_gpus=None if lacking == "gpus" else 1)
    trajectory(experiment, num_completion_tokens=None if lacking == "tokens" else 5)
    cost = cost_of(experiment)
    assert cost.money is None
    assert cost.unknown == ["GPU-hours" if lacking == "gpus" else "Million generated tokens"]
    rows = {row.label: row.values[0] for row in cost_rows(cost)}
    assert rows["GPU-hours" if lacking == "gpus" else "Generated tokens"] is None
    assert rows["Sum"] is None


def test_a_total_is_unknown_when_a_part_of_it_is() -> None:
    prices = prices_of(make_team())
    costs = [
        Cost(prices=prices, gpu_hours=2.0, num_solved=1),
        Cost(prices=prices, gpu_hours=None, num_solved=3),
    ]
    total = total_of(prices, costs)
    assert (total.gpu_hours, total.num_solved) == (None, 4)


def test_usage_is_the_share_of_the_desktops_time() -> None:
    experiment = make_experiment()
    attempt(experiment, 1, num_gpus=0)
    for _ in range(20):
        trajectory(experiment, minutes=12)
    usage = usage_of(experiment, cost_of(experiment))
    wanted = 4 / experiment.settings.desktops.num_desktops
    assert usage.desktops == pytest.approx(wanted, rel=0.01)
    assert usage.gpus is None


def test_turns_count_their_tokens() -> None:
    row = make_trajectory(turns=0, status="running")
    for index in range(2):
        row.turns.create(index=index, observed_at=timezone.now())
        completion = Completion(text="x", token_ids=(1, 2, 3), num_prompt_tokens=40)
        turn = Turn(
            index=index,
            observation=Observation(sha256="a" * 64, width=1, height=1),
            completion=completion,
            action=Action(kind=ActionKind.WAIT),
        )
        close_turn(trajectory_id=row.pk, turn=turn, thought="", completed_at=timezone.now())
    row.refresh_from_db()
    assert (row.num_prompt_tokens, row.num_completion_tokens) == (80, 6)


def test_a_first_turn_that_is_not_generated_yet_makes_no_count_unknown() -> None:
    experiment = make_experiment()
    make_trajectory(experiment=experiment, num_prompt_tokens=100, num_completion_tokens=7)
    running = make_trajectory(experiment=experiment, turns=0, status="running")
    shown = Observation(sha256="a" * 64, width=1, height=1)
    open_turn(
        trajectory_id=running.pk, index=0, source=Source.POLICY, observation=shown, observed_at=timezone.now()
    )
    found = cost_of(experiment)
    assert (found.prompt_tokens, found.completion_tokens) == (100, 7)


def test_a_forecast_knows_gpus_only_from_workers_that_are_online() -> None:
    team = make_team()
    config = ExperimentConfig()
    assert cost_forecast(config, 3600, team).gpu_hours is None
    worker = make_worker(queue="gpu")
    worker.gpus = [{"index": 0}, {"index": 1}]
    worker.save()
    TeamPrices.objects.create(team=team, gpu_hour=3)
    found = cost_forecast(config, 7200, team)
    assert (found.gpu_hours, found.desktop_hours) == (2, 2 * config.desktops.num_desktops)
    assert found.text == "6.00 USD"
    gang = {"optimiser": {"num_processes": 8, "num_hosts": 2}, "checkpoints": {"directory": "/shared"}}
    spread = ExperimentConfig.model_validate(gang)
    assert cost_forecast(spread, 3600, team).gpu_hours == 4, "two of each of two hosts"


def test_only_admins_set_prices_and_bad_ones_are_named(client) -> None:
    team = make_team()
    client.force_login(make_user(Role.OPERATOR, team=team))
    assert client.post("/experiments/prices/", {"currency": "EUR", "gpu_hour": "2"}).status_code == 403
    client.force_login(make_user(Role.ADMIN, team=team))
    refused = client.post("/experiments/prices/", {"currency": "", "gpu_hour": "cheap"})
    assert refused.status_code == 422
    assert "is not a number" in refused.content.decode()
    assert not TeamPrices.objects.exists()
    client.post("/experiments/prices/", {"currency": "EUR", "gpu_hour": "2.5"})
    assert (prices_of(team).gpu_hour, prices_of(team).currency) == (2.5, "EUR")
