"""The queue of record: claims, transitions, attempts, restarts."""

from datetime import timedelta

import pytest
from django.utils import timezone
from pydantic import TypeAdapter

from testing.factories import make_experiment, make_team, make_user
from training.contracts.config import ExperimentConfig, SftConfig
from training.contracts.config.reward_presets import WeightedTerm
from training.contracts.trainer_reports import CheckpointReport
from webapp.experiments.models import (
    EXPERIMENT_TRANSITIONS,
    Attempt,
    AttemptStatus,
    Experiment,
    ExperimentStatus,
    Incident,
)
from webapp.experiments.placement import waiting_reasons as waiting
from webapp.experiments.placement.pool import Assignment, Share
from webapp.experiments.services import attempts, checkpoints, metrics
from webapp.experiments.services.experiments import (
    move_in_queue,
    queue_experiment,
    request_cancel,
    request_pause,
    resume_experiment,
    undo_cancel,
)
from webapp.experiments.services.placements import place_experiment
from webapp.experiments.services.statuses import change_status
from webapp.fleet.services.workers import beat_worker, record_gpus

pytestmark = pytest.mark.django_db


def queue(name: str = "first", **values: object) -> Experiment:
    return queue_experiment(
        team=values.pop("team", None) or make_team(),
        owner=None,
        name=name,
        config=values.pop("config", ExperimentConfig()),
        **values,
    )


def gpu_worker(name: str = "gpu@here") -> None:
    beat_worker(name=name, queue="gpu", host="here", pid=1, slots=1, version="1")


def queue_now() -> list[Experiment]:
    return waiting.queue_in_order(waiting.queue_state())


def claim(*, experiment_id: int, attempt_number: int, worker_name: str) -> Attempt | None:
    """As a worker does whose job was sent before."""
    place_experiment(Assignment(experiment_id, (Share(worker_name, ()),)))
    return attempts.claim_experiment(
        experiment_id=experiment_id, attempt_number=attempt_number, worker_name=worker_name
    )


def test_queueing_stores_the_resolved_config_and_its_stages() -> None:
    config = ExperimentConfig(sft=SftConfig(enabled=True))
    experiment = queue(config=config)
    assert ExperimentConfig.model_validate(experiment.config) == config
    assert [stage.name for stage in experiment.stages.all()] == [
        "demonstrations",
        "sft",
        "evaluation-before",
        "grpo",
        "evaluation-after",
    ]


def test_only_one_of_two_jobs_claims_an_experiment() -> None:
    experiment = queue()
    first = claim(experiment_id=experiment.pk, attempt_number=1, worker_name="gpu@a")
    again = claim(experiment_id=experiment.pk, attempt_number=1, worker_name="gpu@b")
    assert first is not None
    assert again is None
    assert Attempt.objects.get().worker_name == "gpu@a"


def test_a_redelivered_job_of_an_earlier_attempt_steps_aside_after_a_requeue() -> None:
    experiment = queue()
    attempt = claim(experiment_id=experiment.pk, attempt_number=1, worker_name="gpu@a")
    attempts.requeue_after_crash(
        attempt=attempt, status=AttemptStatus.CRASHED, reason="killed", max_restarts=3
    )
    assert claim(experiment_id=experiment.pk, attempt_number=1, worker_name="x") is None
    assert claim(experiment_id=experiment.pk, attempt_number=2, worker_name="x")


def test_an_attempt_after_a_crash_knows_the_step_of_the_checkpoint_it_goes_on_from() -> None:
    experiment = queue()
    for step, deleted_at in ((4, None), (8, None), (12, timezone.now())):
        experiment.checkpoints.create(
            step=step, path=f"/{step}", policy_version=step, size_bytes=1, deleted_at=deleted_at
        )
    attempt = claim(experiment_id=experiment.pk, attempt_number=1, worker_name="gpu@a")
    assert attempt.resumed_step is None
    attempts.requeue_after_crash(
        attempt=attempt, status=AttemptStatus.CRASHED, reason="killed", max_restarts=3
    )
    again = claim(experiment_id=experiment.pk, attempt_number=2, worker_name="x")
    assert again.resumed_step == 8


def test_an_attempt_goes_on_where_its_trainer_says_even_from_a_checkpoint_never_reported() -> None:
    experiment = queue()
    experiment.checkpoints.create(step=4, path="/4", policy_version=4, size_bytes=1, success=0.5)
    for number in (1, 2):
        attempt = claim(experiment_id=experiment.pk, attempt_number=number, worker_name="gpu@a")
        attempts.requeue_after_crash(
            attempt=attempt, status=AttemptStatus.CRASHED, reason="killed", max_restarts=3
        )
    assert attempt.resumed_step == 4
    for step in (8, 4):
        found = CheckpointReport(step=step, path=f"/{step}", policy_version=step, bytes=1)
        checkpoints.record_resume(experiment_id=experiment.pk, attempt=2, report=found)
        attempt.refresh_from_db()
        assert attempt.resumed_step == step
    kept = experiment.checkpoints.order_by("step").values_list("step", "success")
    assert list(kept) == [(4, 0.5), (8, None)], "what was reported before stays as it is"


def test_a_failed_claim_leaves_no_attempt_behind() -> None:
    experiment = queue()
    request_cancel(experiment=experiment)
    assert claim(experiment_id=experiment.pk, attempt_number=1, worker_name="x") is None
    assert not Attempt.objects.exists()


def test_the_queue_runs_by_priority_then_by_order() -> None:
    first, second, urgent = queue("first"), queue("second"), queue("urgent", priority=5)
    assert queue_now() == [urgent, first, second]
    move_in_queue(experiment=second, before=first)
    assert queue_now() == [urgent, second, first]
    move_in_queue(experiment=second, before=None)
    assert [e.pk for e in queue_now()] == [urgent.pk, first.pk, second.pk]


def test_a_waiting_experiment_is_cancelled_at_once_and_a_running_one_is_asked() -> None:
    waiting, running = queue(), make_experiment(status=ExperimentStatus.RUNNING)
    user = make_user("operator", name="olga")
    assert request_cancel(experiment=waiting, user=user)
    assert request_cancel(experiment=running, user=user)
    waiting.refresh_from_db()
    running.refresh_from_db()
    assert waiting.status == ExperimentStatus.CANCELLED
    assert running.status == ExperimentStatus.CANCELLING
    assert "olga" in running.message


@pytest.mark.parametrize("status", [ExperimentStatus.FINISHED, ExperimentStatus.CANCELLED])
def test_an_ended_experiment_can_be_neither_paused_nor_cancelled(status: ExperimentStatus) -> None:
    ended = make_experiment(status=status)
    assert not request_pause(experiment=ended)
    assert not request_cancel(experiment=ended)
    ended.refresh_from_db()
    assert ended.status == status


def test_pausing_waits_for_the_trainer_and_resuming_queues_again() -> None:
    experiment = make_experiment(status=ExperimentStatus.RUNNING)
    assert request_pause(experiment=experiment)
    assert change_status(experiment.pk, ExperimentStatus.PAUSED)
    experiment.refresh_from_db()
    assert resume_experiment(experiment=experiment)
    experiment.refresh_from_db()
    assert experiment.status == ExperimentStatus.QUEUED


def test_a_silent_gpu_worker_loses_its_experiment_which_is_queued_again_and_told() -> None:
    experiment = queue()
    claim(experiment_id=experiment.pk, attempt_number=1, worker_name="gpu@a")
    Experiment.objects.filter(pk=experiment.pk).update(heartbeat_at=timezone.now() - timedelta(minutes=1))
    assert attempts.lose_stale_experiments() == [experiment.pk]
    experiment.refresh_from_db()
    assert experiment.status == ExperimentStatus.QUEUED
    assert Attempt.objects.get().status == AttemptStatus.LOST
    assert "gpu@a stopped answering" in Incident.objects.get().message
    assert attempts.lose_stale_experiments() == []


def test_an_attempt_that_has_ended_is_not_lost_again() -> None:
    experiment = queue()
    attempt = claim(experiment_id=experiment.pk, attempt_number=1, worker_name="gpu@a")
    attempts.end_attempt(attempt=attempt, status=AttemptStatus.FINISHED)
    silent = timezone.now() - timedelta(minutes=1)
    Experiment.objects.filter(pk=experiment.pk).update(heartbeat_at=silent)
    assert attempts.lose_stale_experiments() == []
    attempt.refresh_from_db()
    assert attempt.status == AttemptStatus.FINISHED
    assert not Incident.objects.exists()


@pytest.mark.parametrize("status", [AttemptStatus.CRASHED, AttemptStatus.LOST])
def test_restarts_are_bounded_between_checkpoints(status: AttemptStatus) -> None:
    experiment = queue()
    for number in range(1, 4):
        attempt = claim(experiment_id=experiment.pk, attempt_number=number, worker_name="gpu@a")
        attempts.requeue_after_crash(attempt=attempt, status=status, reason="out of memory", max_restarts=2)
    experiment.refresh_from_db()
    assert experiment.status == ExperimentStatus.FAILED
    assert "out of memory" in experiment.message


def test_a_checkpoint_gives_the_restarts_back() -> None:
    experiment = queue()
    for number in range(1, 5):
        attempt = claim(experiment_id=experiment.pk, attempt_number=number, worker_name="gpu@a")
        saved = CheckpointReport(step=number, path=f"/checkpoints/{number}", policy_version=number)
        checkpoints.record_checkpoint(experiment_id=experiment.pk, report=saved)
        attempts.requeue_after_crash(
            attempt=attempt, status=AttemptStatus.CRASHED, reason="killed", max_restarts=1
        )
    experiment.refresh_from_db()
    assert experiment.status == ExperimentStatus.QUEUED


def test_a_crash_while_cancelling_ends_cancelled() -> None:
    experiment = queue()
    attempt = claim(experiment_id=experiment.pk, attempt_number=1, worker_name="gpu@a")
    request_cancel(experiment=experiment)
    attempts.requeue_after_crash(attempt=attempt, status=AttemptStatus.LOST, reason="gone", max_restarts=3)
    experiment.refresh_from_db()
    assert experiment.status == ExperimentStatus.CANCELLED


def test_waiting_says_why() -> None:
    experiment = queue()
    assert "No gpu worker is online" in waiting.why_waiting(experiment)
    gpu_worker()
    assert "until a gpu worker has reported its GPUs" in waiting.why_waiting(experiment)
    record_gpus(name="gpu@here", gpus=[])
    assert waiting.why_waiting(experiment) == "Starts in a moment."
    running = make_experiment(status=ExperimentStatus.RUNNING, placed_worker="gpu@here")
    assert (
        waiting.why_waiting(experiment)
        == f"The gpu worker holds an experiment. Running there: #{running.pk}."
    )


def test_metrics_of_a_repeated_step_replace_the_old_ones() -> None:
    experiment = make_experiment()
    for attempt, value in ((1, 0.25), (2, 0.5)):
        metrics.record_metrics(
            experiment_id=experiment.pk,
            attempt=attempt,
            step=3,
            values={"rollout/reward_mean": value},
            policy_version=3,
        )
    point = experiment.metrics.get()
    assert (point.step, point.value, point.attempt) == (3, 0.5, 2)


def test_the_longest_name_of_a_reward_term_is_the_name_of_a_metric() -> None:
    experiment, term = make_experiment(), "t" * 60
    preset = [{"term": term, "weight": 1.0}]
    assert TypeAdapter(list[WeightedTerm]).validate_python(preset)[0].term == term
    values = {f"reward/{term}": 0.5, "x" * 200: 1.0}
    metrics.record_metrics(experiment_id=experiment.pk, attempt=1, step=1, values=values, policy_version=1)
    assert [*experiment.metrics.order_by("name").values_list("name", flat=True)] == [
        f"reward/{term}",
        "x" * 79 + "…",
    ]


def test_every_status_that_is_not_final_can_be_left() -> None:
    for status, targets in EXPERIMENT_TRANSITIONS.items():
        assert bool(targets) or status.is_final(), status


def test_a_cancel_while_waiting_can_be_taken_back_and_one_while_running_cannot() -> None:
    waiting, paused, running = (make_experiment(status=status) for status in ("queued", "paused", "running"))
    for experiment in (waiting, paused, running):
        assert request_cancel(experiment=experiment)
    assert undo_cancel(experiment=waiting, former="queued")
    assert undo_cancel(experiment=paused, former="paused")
    assert not undo_cancel(experiment=running, former="running")
    statuses = [Experiment.objects.get(pk=row.pk).status for row in (waiting, paused, running)]
    assert statuses == ["queued", "paused", "cancelling"]
    assert Experiment.objects.get(pk=waiting.pk).ended_at is None


@pytest.mark.parametrize(
    "reason", ["显存不足" * 200, "half \ud83d of a pair, a \x00"], ids=["CJK", "unstorable"]
)
def test_a_crash_is_recorded_whatever_its_reason_says(reason: str) -> None:
    experiment = make_experiment(status=ExperimentStatus.RUNNING)
    attempt = Attempt.objects.create(experiment=experiment, number=1, worker_name="gpu1")
    assert attempts.requeue_after_crash(
        attempt=attempt, status=AttemptStatus.CRASHED, reason=reason, max_restarts=3
    )
    experiment.refresh_from_db()
    assert experiment.status == ExperimentStatus.QUEUED
    shown = reason.replace("\ud83d", "\ufffd").replace("\x00", "\u2400")
    assert shown in experiment.message
    assert shown in experiment.incidents.get().message
