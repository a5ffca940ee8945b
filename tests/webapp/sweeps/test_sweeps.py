"""A sweep from its launch to its end, by the statuses and numbers that its experiments report."""

import json
from io import StringIO

import pytest
from django.core.management import call_command
from django.utils import timezone

from testing.evaluation_rows import make_evaluation
from testing.factories import make_experiment, make_team, make_user
from testing.fleet_rows import make_worker
from training.contracts.config import ConfigError, ExperimentConfig
from webapp.accounts.models import Role
from webapp.experiments.models import (
    ARM_TRANSITIONS,
    SWEEP_TRANSITIONS,
    ArmStatus,
    Experiment,
    ExperimentStatus,
    MetricPoint,
    Sweep,
    SweepArm,
    SweepStatus,
)
from webapp.experiments.placement.waiting_reasons import queue_in_order, queue_state
from webapp.experiments.services.experiments import queue_experiment
from webapp.experiments.sweep_plan import SweepPlan
from webapp.sweeps.forecast import sweep_forecast
from webapp.sweeps.queries.results import best_of, results_of
from webapp.sweeps.search_space import parse_axes
from webapp.sweeps.services.arms import _queue, advance_sweeps
from webapp.sweeps.services.sweeps import cancel_sweep, launch_sweep, pause_sweep, resume_sweep

pytestmark = pytest.mark.django_db
RATE = "optimiser.learning_rate"


def launch(text: str = f"{RATE} = 1e-6, 3e-6, 1e-5", **values: object) -> Sweep:
    config = ExperimentConfig()
    wanted = {"num_seeds": 2, "metric": "rollout/success", **values}
    plan = SweepPlan(axes=parse_axes(text, config), **wanted)
    return launch_sweep(team=make_team(), owner=None, name="rates", config=config, plan=plan)


def experiments(sweep: Sweep, number: int) -> list[Experiment]:
    return list(Experiment.objects.filter(arm__sweep=sweep, arm__number=number).order_by("id"))


def end(experiment: Experiment, *values: float, status: str = ExperimentStatus.FINISHED) -> None:
    record(experiment, *values)
    Experiment.objects.filter(pk=experiment.pk).update(status=status, ended_at=timezone.now())


def record(experiment: Experiment, *values: float) -> None:
    MetricPoint.objects.bulk_create(
        MetricPoint(experiment=experiment, name="rollout/success", step=step, value=value)
        for step, value in enumerate(values, 1)
    )


def test_names_of_experiments_keep_arm_and_seed_under_a_long_name() -> None:
    launch(num_seeds=1)
    Sweep.objects.update(name="n" * 100)
    SweepArm.objects.filter(number=1).update(number=10_000)
    arm = SweepArm.objects.select_related("sweep").get(number=10_000)
    config = ExperimentConfig.model_validate({"optimiser": {"seed": 2**62}})
    queued = _queue(arm, config)
    queued.refresh_from_db()
    run = f" · arm 10000, seed {2**62}"
    assert queued.name == "n" * (120 - len(run)) + run


def end_arm(sweep: Sweep, number: int, *values: float) -> None:
    for experiment, value in zip(experiments(sweep, number), values, strict=True):
        end(experiment, value)
    advance_sweeps()


def test_every_status_has_its_row() -> None:
    assert set(SWEEP_TRANSITIONS) == set(SweepStatus)
    assert set(ARM_TRANSITIONS) == set(ArmStatus)


def test_the_first_arms_are_queued_with_all_their_seeds() -> None:
    sweep = launch(arms_at_once=2)
    assert [arm.status for arm in sweep.arms.all()] == ["running", "running"]
    configs = [one.settings for one in experiments(sweep, 1)]
    assert [config.optimiser.seed for config in configs] == [0, 1]
    assert {config.optimiser.learning_rate for config in configs} == {sweep.arms.get(number=1).values[RATE]}


def test_single_experiments_of_the_same_priority_run_first() -> None:
    sweep = launch()
    single = queue_experiment(team=sweep.team, owner=None, name="mine", config=ExperimentConfig())
    assert queue_in_order(queue_state())[0] == single


def test_an_arm_ends_with_its_seeds_and_the_next_one_begins() -> None:
    sweep = launch(arms_at_once=1)
    end(experiments(sweep, 1)[0], 0.4)
    assert advance_sweeps() == []
    end(experiments(sweep, 1)[1], 0.6)
    assert advance_sweeps() == [sweep.pk]
    first, second = sweep.arms.all()
    assert (first.status, first.objective) == ("finished", pytest.approx(0.5))
    assert second.status == "running"
    assert Experiment.objects.filter(arm=second).count() == 2


def test_the_whole_ends_with_its_last_arm_and_knows_the_best_with_its_interval() -> None:
    sweep = launch(arms_at_once=3)
    end_arm(sweep, 1, 0.1, 0.12)
    end_arm(sweep, 2, 0.8, 0.82)
    end_arm(sweep, 3, 0.3, 0.32)
    sweep.refresh_from_db()
    assert sweep.status == "finished"
    best = best_of(results_of(sweep), sweep.plan)
    assert best is not None
    assert best.result.arm.number == 2
    # two seeds: t(1) = 12.706, s / sqrt(2) = 0.01
    assert best.result.interval == pytest.approx((0.81 - 0.12706, 0.81 + 0.12706), abs=1e-5)
    assert best.rivals == []


def test_arms_whose_intervals_overlap_the_best_are_its_rivals() -> None:
    sweep = launch(f"{RATE} = 1e-6, 3e-6")
    end_arm(sweep, 1, 0.4, 0.6)
    end_arm(sweep, 2, 0.5, 0.7)
    best = best_of(results_of(sweep), sweep.plan)
    assert best is not None
    assert [one.arm.number for one in best.rivals] == [1]


def test_seeds_that_all_agree_give_no_interval_and_equal_arms_are_best_together() -> None:
    sweep = launch(f"{RATE} = 1e-6, 3e-6")
    end_arm(sweep, 1, 0.5, 0.5)
    end_arm(sweep, 2, 0.5, 0.5)
    best = best_of(results_of(sweep), sweep.plan)
    assert best is not None
    assert best.result.interval is None
    assert [one.arm.number for one in best.rivals] == [one.arm.number for one in best.equals] == [2]


def test_a_hopeless_arm_is_stopped_and_its_seeds_cancelled() -> None:
    sweep = launch(arms_at_once=3, warmup_steps=2)
    for number in (1, 2):
        for experiment in experiments(sweep, number):
            end(experiment, 0.5, 0.6, 0.7)
    record(experiments(sweep, 3)[0], 0.1, 0.1)
    advance_sweeps()
    arm = sweep.arms.get(number=3)
    assert arm.status == "stopped"
    assert "step 2" in arm.message
    assert {one.status for one in experiments(sweep, 3)} == {"cancelled"}
    sweep.refresh_from_db()
    assert sweep.status == "finished"


def test_a_good_arm_goes_on() -> None:
    sweep = launch(arms_at_once=3, warmup_steps=2)
    for number in (1, 2):
        for experiment in experiments(sweep, number):
            end(experiment, 0.5, 0.6, 0.7)
    record(experiments(sweep, 3)[0], 0.5, 0.9)
    advance_sweeps()
    assert sweep.arms.get(number=3).status == "running"


def test_held_out_success_judges_by_the_last_evaluation() -> None:
    sweep = launch("", metric="evaluation/greedy")
    for experiment, solved in zip(experiments(sweep, 1), (6, 8), strict=True):
        make_evaluation(experiment, won=0, total=10, temperature=0)
        make_evaluation(experiment, name="after", step=9, won=solved, total=10, temperature=0)
        make_evaluation(experiment, name="after", step=9, won=1, total=10)
        end(experiment)
    advance_sweeps()
    assert sweep.arms.get().objective == pytest.approx(0.7)


def test_arms_are_judged_by_what_the_agent_ended() -> None:
    sweep = launch("", metric="evaluation/greedy")
    for experiment, at_limit in zip(experiments(sweep, 1), (10, 4), strict=True):
        make_evaluation(experiment, tasks={"menu-1": (10, 10, 0, at_limit)}, temperature=0)
        end(experiment)
    advance_sweeps()
    assert sweep.arms.get().objective == pytest.approx(0.3)
    (arm,) = results_of(sweep)
    assert [arm.samples[one.pk].num_success for one in arm.experiments] == [0, 6]


def test_a_seed_that_failed_counts_in_no_mean_and_arms_without_any_have_failed() -> None:
    sweep = launch(arms_at_once=3)
    one, other = experiments(sweep, 1)
    end(one, 0.4)
    end(other, 0.0, status=ExperimentStatus.FAILED)
    for experiment in experiments(sweep, 2):
        end(experiment, status=ExperimentStatus.FAILED)
    advance_sweeps()
    assert [arm.status for arm in sweep.arms.all()] == ["finished", "failed", "running"]
    assert sweep.arms.get(number=1).objective == pytest.approx(0.4)


def test_a_sweep_whose_first_arms_all_fail_ends() -> None:
    sweep = launch(f"{RATE} = 1e-6, 2e-6, 3e-6, 4e-6, 5e-6", num_seeds=1, arms_at_once=1)
    for number in (1, 2, 3):
        end(experiments(sweep, number)[0], status=ExperimentStatus.FAILED)
        advance_sweeps()
    sweep.refresh_from_db()
    assert (sweep.status, sweep.arms.count()) == ("failed", 3)


def test_the_whole_is_paused_resumed_and_cancelled() -> None:
    sweep = launch(f"{RATE} = 1e-6, 3e-6", arms_at_once=1)
    running, waiting = experiments(sweep, 1)
    Experiment.objects.filter(pk=running.pk).update(status=ExperimentStatus.RUNNING)
    assert pause_sweep(sweep=sweep)
    assert [one.status for one in experiments(sweep, 1)] == ["pausing", "paused"]
    assert not resume_sweep(sweep=sweep)  # its checkpoint is still being saved
    Experiment.objects.filter(pk=running.pk).update(status=ExperimentStatus.PAUSED)
    assert resume_sweep(sweep=sweep)
    assert [one.status for one in experiments(sweep, 1)] == ["queued", "queued"]
    assert cancel_sweep(sweep=sweep)
    assert [one.status for one in experiments(sweep, 1)] == ["cancelled", "cancelled"]
    assert not cancel_sweep(sweep=sweep)
    assert advance_sweeps() == []
    assert sweep.arms.get().status == "cancelled"


def test_nothing_is_stored_of_a_plan_that_is_refused() -> None:
    with pytest.raises(ConfigError):
        launch("", num_seeds=1)
    assert not Sweep.objects.exists()


def test_the_command_launches_shows_and_steers() -> None:
    make_team()
    made = command("launch", preset="first-desk", axes=[f"{RATE}=1e-3, 2e-3"], seeds=3, anyway=True)
    assert made["experiments"] == 6
    shown = command("sweep", made["sweep"])
    assert [len(arm["experiments"]) for arm in shown["arms"]] == [3, 3]
    assert command("sweep", made["sweep"], "cancel")["status"] == "cancelled"


def command(name: str, *args: object, **options: object) -> dict:
    out = StringIO()
    call_command(name, *args, stdout=out, **options)
    return json.loads(out.getvalue())


def test_the_list_has_one_row_for_all_of_it_with_its_own_status(client) -> None:
    sweep = launch(arms_at_once=3)
    make_experiment(team=sweep.team, name="a single one")
    client.force_login(make_user(Role.VIEWER, team=sweep.team))
    end_arm(sweep, 1, 0.4, 0.6)
    page = client.get("/experiments/?status=running").content.decode()
    assert page.count('<tr id="sweep-') == 1
    assert page.count('<tr id="experiment-') == 1
    assert "1 / 3" in page
    assert "50 %" in page
    assert '<tr id="sweep-' not in client.get("/experiments/?status=finished").content.decode()
    first = experiments(sweep, 1)[0]
    first.delete()
    assert client.get("/experiments/").content.decode().count('<tr id="sweep-') == 1
    assert SweepArm.objects.count() == 3


@pytest.mark.parametrize(
    ("workers", "arms_at_once", "at_once", "rounds"),
    [(0, 2, 1, 6), (2, 2, 2, 3), (4, 2, 4, 2), (9, 2, 4, 2), (9, 3, 6, 1)],
)
def test_a_sweep_takes_as_many_rounds_as_its_workers_need(workers, arms_at_once, at_once, rounds):
    for number in range(workers):
        make_worker(f"gpu{number}@h1", queue="gpu")
    axes = parse_axes(f"{RATE} = 1e-6, 3e-6, 1e-5", ExperimentConfig())
    found = sweep_forecast(SweepPlan(axes=axes, num_seeds=2, arms_at_once=arms_at_once), 10.0)
    assert (found.worker_seconds, found.num_workers, found.seconds) == (60.0, at_once, 10.0 * rounds)
