"""Experiments follow the jobs that a cluster's scheduler has of them."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from testing.factories import make_experiment
from webapp.dispatcher.cluster_jobs import go_round
from webapp.dispatcher.launchers.contract import ClusterJob, JobRequest, Launcher, LauncherError, Phase
from webapp.experiments.models import Attempt, Experiment
from webapp.experiments.placement.waiting_reasons import why_waiting
from webapp.experiments.services.attempts import claim_experiment
from webapp.worker_door import attempts as door

pytestmark = [pytest.mark.django_db, pytest.mark.db]


class Scheduler(Launcher):
    """One whose jobs the test moves."""

    def __init__(self) -> None:
        self.held: dict[str, ClusterJob] = {}
        self.submitted: list[JobRequest] = []
        self.cancelled: list[str] = []
        self.refuses = ""

    def check(self) -> None:
        pass

    def jobs(self) -> dict[str, ClusterJob]:
        return dict(self.held)

    def submit(self, wanted: JobRequest) -> str:
        if self.refuses:
            raise LauncherError(self.refuses)
        self.submitted.append(wanted)
        name = f"slurm-x-{len(self.submitted)}"
        self.move(name, Phase.WAITING, "PENDING: Resources")
        return name

    def move(self, name: str, phase: Phase, state: str) -> None:
        self.held[name] = ClusterJob(name, phase, state)

    def cancel(self, names: Collection[str]) -> None:
        self.cancelled += names

    def last_lines(self, name: str) -> str:
        return "ModuleNotFoundError: No module named 'torch'"


@pytest.fixture
def scheduler() -> Scheduler:
    return Scheduler()


@pytest.fixture
def row(settings) -> Experiment:
    settings.GPU_LAUNCHER = "slurm"
    return make_experiment(status="queued")


def now(row: Experiment) -> Experiment:
    return Experiment.objects.get(pk=row.pk)


def test_one_job_is_queued_and_its_words_are_shown(scheduler: Scheduler, row: Experiment):
    for _ in range(3):
        go_round(scheduler)
    assert [(one.experiment_id, one.attempt) for one in scheduler.submitted] == [(row.pk, 1)]
    assert why_waiting(now(row)).startswith("slurm-x-1 PENDING: Resources, since 0")
    scheduler.move("slurm-x-1", Phase.RUNNING, "RUNNING")
    claimed = claim_experiment(experiment_id=row.pk, attempt_number=1, worker_name="gpu@slurm-x-1")
    assert claimed is not None
    go_round(scheduler)
    assert (len(scheduler.submitted), scheduler.cancelled) == (1, [])


def test_a_job_that_is_stopped_goes_on_in_another_and_uses_up_no_restart(
    scheduler: Scheduler, row: Experiment
):
    go_round(scheduler)
    claimed = claim_experiment(experiment_id=row.pk, attempt_number=1, worker_name="gpu@slurm-x-1")
    assert claimed is not None
    door.end_stopped(claimed.pk, "the gpu worker was stopped")
    assert not door.has_crashed(row.pk, 1)
    scheduler.move("slurm-x-1", Phase.RUNNING, "COMPLETING")
    go_round(scheduler)
    assert len(scheduler.submitted) == 1
    scheduler.move("slurm-x-1", Phase.TAKEN, "PREEMPTED")
    go_round(scheduler)
    assert [one.attempt for one in scheduler.submitted] == [1, 2]


def test_nothing_is_queued_while_nothing_waits(scheduler: Scheduler):
    go_round(scheduler)
    assert (scheduler.submitted, scheduler.cancelled) == ([], [])


def test_a_job_that_dies_at_once_fails_with_its_last_lines(scheduler: Scheduler, row: Experiment):
    go_round(scheduler)
    scheduler.move("slurm-x-1", Phase.FAILED, "FAILED: NonZeroExitCode")
    go_round(scheduler)
    failed = now(row)
    assert failed.status == "failed"
    assert "FAILED: NonZeroExitCode" in failed.message
    assert "No module named 'torch'" in failed.message
    assert Attempt.objects.get(experiment=row).status == "crashed"
    go_round(scheduler)
    assert len(scheduler.submitted) == 1


@pytest.mark.parametrize("gone", [True, False])
def test_a_job_that_the_scheduler_took_is_queued_again(scheduler: Scheduler, row: Experiment, gone: bool):
    go_round(scheduler)
    if gone:
        scheduler.held.clear()
    else:
        scheduler.move("slurm-x-1", Phase.TAKEN, "PREEMPTED")
    go_round(scheduler)
    assert len(scheduler.submitted) == 2
    assert now(row).placed_worker == "gpu@slurm-x-2"


def test_a_job_that_a_person_ended_there_pauses_its_experiment(scheduler: Scheduler, row: Experiment):
    go_round(scheduler)
    scheduler.move("slurm-x-1", Phase.STOPPED, "CANCELLED")
    go_round(scheduler)
    go_round(scheduler)
    assert now(row).status == "paused"
    assert "slurm-x-1 was ended in the cluster (CANCELLED)" in now(row).message
    assert len(scheduler.submitted) == 1


def test_the_job_of_a_cancelled_experiment_leaves_the_queue(scheduler: Scheduler, row: Experiment):
    go_round(scheduler)
    Experiment.objects.filter(pk=row.pk).update(status="cancelled")
    go_round(scheduler)
    assert scheduler.cancelled == ["slurm-x-1"]


def test_what_the_scheduler_refuses_is_shown_and_keeps_no_others(scheduler: Scheduler, row: Experiment):
    scheduler.refuses = "SLURM: sbatch: error: Requested node configuration is not available"
    go_round(scheduler)
    assert "Requested node configuration" in why_waiting(now(row))
    scheduler.refuses = ""
    go_round(scheduler)
    assert len(scheduler.submitted) == 1


def test_several_hosts_need_a_network_and_are_nodes_of_one_job(
    scheduler: Scheduler, row: Experiment, settings
):
    settings.TRAIN_NETWORK = ""
    config = row.config | {"optimiser": row.config["optimiser"] | {"num_hosts": 2, "num_processes": 2}}
    Experiment.objects.filter(pk=row.pk).update(config=config)
    go_round(scheduler)
    assert scheduler.submitted == []
    assert "DESKHAND_TRAIN_NETWORK" in why_waiting(now(row))
    settings.TRAIN_NETWORK = "10.0.0.0/8"
    go_round(scheduler)
    assert [(one.num_nodes, one.num_gpus) for one in scheduler.submitted] == [(2, 0)]
    assert [one["worker"] for one in now(row).placed_members] == ["gpu@slurm-x-1-n1"]
