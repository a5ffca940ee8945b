"""The guard against experiments whose trajectories all error: they pause, with the reason and the remedy."""

import pytest

from testing.factories import make_experiment, make_group, make_trajectory
from training.contracts.config import ExperimentConfig
from training.contracts.types import TrajectoryStatus
from webapp.experiments.models import Experiment, ExperimentStatus
from webapp.trajectories.models import Group
from webapp.trajectories.services.trajectories import end_trajectory

pytestmark = pytest.mark.django_db
CONFIG = ExperimentConfig().model_dump(mode="json")
LIMIT = 4


def experiment(limit: int = LIMIT) -> Experiment:
    config = CONFIG | {
        "alarms": {**CONFIG["alarms"], "unscored_in_a_row": limit},
        "desktops": {**CONFIG["desktops"], "num_desktops": 1, "retries": 0},
    }
    return make_experiment(status=ExperimentStatus.RUNNING, config=config)


def group_of(owner: Experiment, attempt: int = 1) -> Group:
    return make_group(experiment=owner, size=20, attempt=attempt)


def end(group: Group, number: int = 1, status: str = TrajectoryStatus.ERRORED) -> str:
    """End that many trajectories; the experiment's status after it."""
    for _ in range(number):
        row = make_trajectory(group=group, turns=0, status=TrajectoryStatus.EVALUATING)
        failed = {"error": "connection refused", "error_kind": "policy_server"}
        scored = {"score": 1.0, "reward": 1.0}
        is_error = status == TrajectoryStatus.ERRORED
        assert end_trajectory(trajectory_id=row.pk, status=status, **(failed if is_error else scored))
    return Experiment.objects.values_list("status", flat=True).get(pk=group.experiment_id)


def test_it_pauses_once_with_the_reason_and_what_to_do() -> None:
    group = group_of(experiment())
    assert end(group, LIMIT - 1) == "running"
    assert end(group) == "pausing"
    assert end(group) == "pausing"
    owner = Experiment.objects.get()
    alarm = owner.alarms.get()
    assert (alarm.name, alarm.severity, alarm.num_times) == ("nothing_scored", "critical", 1)
    assert alarm.message == "None of the last 4 trajectories was scored. 4 of them: connection refused"
    assert "policy log" in alarm.remedy
    assert owner.message == alarm.message
    assert owner.incidents.count() == 1


def test_one_that_was_scored_begins_the_count_anew() -> None:
    group = group_of(experiment())
    end(group, LIMIT - 1)
    end(group, status=TrajectoryStatus.TERMINATED)
    assert end(group, LIMIT - 1) == "running"
    assert end(group) == "pausing"


def test_a_resumed_attempt_is_judged_by_its_own_trajectories() -> None:
    owner = experiment()
    end(group_of(owner), LIMIT)
    Experiment.objects.update(status=ExperimentStatus.RUNNING)
    assert end(group_of(owner, attempt=2), LIMIT - 1) == "running"


def test_many_desktops_may_all_fail_once_without_a_pause() -> None:
    owner = experiment()
    owner.config["desktops"]["num_desktops"] = 3
    owner.save()
    group = group_of(owner)
    assert end(group, 8) == "running"
    assert end(group) == "pausing"


def test_0_never_pauses() -> None:
    assert end(group_of(experiment(limit=0)), 12) == "running"
