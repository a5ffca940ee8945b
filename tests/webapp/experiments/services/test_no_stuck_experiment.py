"""Whatever comes in whatever order, nothing stays active on which no attempt works."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from testing.factories import make_attempt, make_experiment
from webapp.experiments.models import ACTIVE_STATUSES, Attempt, AttemptStatus, Experiment, ExperimentStatus
from webapp.experiments.queries.attempts import next_attempt_number
from webapp.experiments.services.attempts import claim_experiment, lose_stale_experiments
from webapp.experiments.services.experiments import request_cancel, request_pause, resume_experiment
from webapp.worker_door import attempts as door

pytestmark = pytest.mark.django_db


def placed() -> Experiment:
    return make_experiment(
        status="queued", placed_worker="gpu@here", placed_keys=[], dispatched_at=timezone.now()
    )


def claim(row: Experiment) -> None:
    Experiment.objects.filter(pk=row.pk, status="queued").update(
        placed_worker="gpu@here", dispatched_at=timezone.now()
    )
    claim_experiment(experiment_id=row.pk, attempt_number=next_attempt_number(row.pk), worker_name="gpu@here")


def of_newest(call: Callable[[int], None]) -> Callable[[Experiment], None]:
    """The gpu worker's report of the attempt that it knows last, open or not."""

    def report(row: Experiment) -> None:
        newest = row.attempts.order_by("-number").first()
        if newest is not None:
            call(newest.pk)

    return report


def fall_silent(row: Experiment) -> None:
    Experiment.objects.filter(pk=row.pk).update(heartbeat_at=timezone.now() - timedelta(hours=1))
    lose_stale_experiments()


EVENTS: dict[str, Callable[[Experiment], object]] = {
    "claim": claim,
    "cancel": lambda row: request_cancel(experiment=row),
    "pause": lambda row: request_pause(experiment=row),
    "resume": lambda row: resume_experiment(experiment=row),
    "start": of_newest(lambda pk: door.start_attempt(pk, "http://x", "t", "")),
    "beat": of_newest(lambda pk: door.beat_attempt(pk)),
    "finished": of_newest(door.end_finished),
    "stopped": of_newest(lambda pk: door.end_stopped(pk, "its worker stops")),
    "crashed": of_newest(lambda pk: door.end_crashed(pk, "it broke", None)),
    "incomplete": of_newest(lambda pk: door.end_incomplete(pk, "one host did not come")),
    "silent": fall_silent,
}


@pytest.mark.parametrize("seed", range(40))
def test_no_order_of_reports_requests_and_losses_leaves_one_that_no_attempt_works_on(seed):
    rng, row, order = random.Random(seed), placed(), []
    for _ in range(12):
        name = rng.choice(list(EVENTS))
        order.append(name)
        row.refresh_from_db()
        EVENTS[name](row)
        row.refresh_from_db()
        is_held = row.attempts.filter(ended_at=None).exists()
        assert (row.status in ACTIVE_STATUSES) == is_held, f"{row.status} after {order}"
    request_cancel(experiment=row)
    fall_silent(row)
    row.refresh_from_db()
    assert ExperimentStatus(row.status).is_final() or row.status == "paused", order


@pytest.mark.parametrize("status", ["starting", "running", "pausing", "cancelling"])
def test_one_whose_attempt_has_ended_long_ago_is_settled(status):
    expected = {"pausing": "paused", "cancelling": "cancelled"}.get(status, "queued")
    row = make_experiment(status=status, placed_worker="gpu@here", heartbeat_at=timezone.now())
    make_attempt(row, status=AttemptStatus.CRASHED, ended_at=timezone.now())
    fall_silent(row)
    row.refresh_from_db()
    assert row.status == expected
    assert Attempt.objects.count() == 1
