"""The gpu worker's heartbeat: goes on while the main thread is busy, ends with the attempt."""

import pytest
from django.utils import timezone

from testing.factories import make_experiment, make_team
from testing.watch_installation import wait_for
from webapp.experiments.models import Attempt, AttemptStatus, Experiment
from webapp.experiments.services import attempts
from webapp.worker_door.attempts import held
from workers.gpu import experiment_heartbeat
from workers.gpu.attempt import AttemptTakenBack, Supervision
from workers.gpu.experiment_heartbeat import Heartbeat

PATIENCE_S = 60


def make_attempt() -> Attempt:
    experiment = make_experiment(team=make_team(), status="starting", heartbeat_at=timezone.now())
    return Attempt.objects.create(experiment=experiment, number=1, worker_name="gpu@here")


def test_it_beats_while_the_main_thread_does_something_else(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment_heartbeat, "EVERY_S", 0.05)
    attempt = make_attempt()
    first = attempt.experiment.heartbeat_at
    with Heartbeat(held(attempt)):
        wait_for("a beat", lambda: Experiment.objects.get(pk=attempt.experiment_id).heartbeat_at > first)


def test_it_does_not_keep_an_attempt_alive_that_was_taken_back(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment_heartbeat, "EVERY_S", 0.05)
    attempt = make_attempt()
    attempts.end_attempt(attempt=attempt, status=AttemptStatus.LOST)
    with Heartbeat(held(attempt)) as beating:
        wait_for("its end", lambda: not beating.is_running())
    assert Experiment.objects.get(pk=attempt.experiment_id).heartbeat_at == attempt.experiment.heartbeat_at


def test_a_worker_whose_attempt_was_taken_back_leaves_instead_of_running_beside_the_next(
    transactional_db: None,
) -> None:
    attempt = make_attempt()
    supervision = Supervision.__new__(Supervision)
    supervision._attempt = held(attempt)
    supervision._beat_due = 0.0
    assert supervision._beat() == "starting"
    attempts.end_attempt(attempt=attempt, status=AttemptStatus.LOST)
    attempts.start_attempt(attempt=attempt, policy_url="http://late", policy_token="late")
    attempt.refresh_from_db()
    assert (attempt.status, attempt.policy_url) == ("lost", "")
    supervision._beat_due = 0.0
    with pytest.raises(AttemptTakenBack):
        supervision._beat()
