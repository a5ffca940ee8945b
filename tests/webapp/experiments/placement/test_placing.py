"""From rows to jobs: what fits goes to the worker that has the places, and why the rest waits is told."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from kombu.exceptions import OperationalError

from testing.factories import make_experiment, make_team
from webapp.dispatcher import place_experiments as dispatcher
from webapp.experiments.models import Experiment, ExperimentStatus
from webapp.experiments.placement.waiting_reasons import why_waiting
from webapp.experiments.services import attempts
from webapp.fleet.models import Worker
from webapp.fleet.services.workers import beat_worker, record_gpus

pytestmark = pytest.mark.django_db
Sent = list[tuple[int, int, str]]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    """(experiment, attempt, worker) of the jobs that were sent; Redis itself is not asked."""
    jobs: Sent = []
    monkeypatch.setattr(
        dispatcher, "send_job", lambda _name, pk, number, only: jobs.append((pk, number, only))
    )
    return jobs


def gpus(number: int, host: str) -> list[dict]:
    return [
        {"index": n, "uuid": f"{host}-{n}", "name": "H100", "memory_bytes": 80, "free_bytes": 80}
        for n in range(number)
    ]


def worker(name: str, num_gpus: int = 0, cpu_places: int = 0) -> None:
    host = name.partition("@")[2]
    beat_worker(name=name, queue="gpu", host=host, pid=1, slots=1, version="1")
    record_gpus(name=name, gpus=gpus(num_gpus, host), cpu_places=cpu_places)


def queued(processes: int, **values: object) -> Experiment:
    config = {"optimiser": {"num_processes": processes}, "algorithm": {"group_size": 8, "groups_per_step": 8}}
    team = values.pop("team", None) or make_team()
    return make_experiment(team=team, config=config, status=ExperimentStatus.QUEUED, **values)


def test_two_two_and_four_go_to_one_host_and_a_fourth_waits_for_it(sent: Sent) -> None:
    for number in range(4):
        worker(f"gpu{number}@a", num_gpus=8)
    team = make_team()
    rows = [queued(size, team=team) for size in (2, 2, 4, 2)]
    assert dispatcher.place_experiments() == 3
    assert [pk for pk, _, _ in sent] == [row.pk for row in rows[:3]]
    placed = Experiment.objects.filter(pk__in=[row.pk for row in rows[:3]])
    keys = [key for row in placed for key in row.placed_keys]
    assert len(keys) == len(set(keys)) == 8
    assert len({row.placed_worker for row in placed}) == 3
    why = why_waiting(rows[3])
    assert why.startswith("Waits for 2 places of one host: 0 of 8 are free on gpu")
    assert f"Running there: #{rows[0].pk}, #{rows[1].pk}, #{rows[2].pk}." in why
    assert dispatcher.place_experiments() == 0


def test_a_gpu_that_another_program_fills_is_named(sent: Sent) -> None:
    worker("gpu@a", num_gpus=2)
    full = [gpu | {"free_bytes": 60 - 60 * gpu["index"]} for gpu in gpus(2, "a")]
    record_gpus(name="gpu@a", gpus=full, cpu_places=0)
    waits = queued(2)
    assert dispatcher.place_experiments() == 0
    assert why_waiting(waits) == (
        "Waits for 2 places of one host: 0 of 2 are free on gpu@a. "
        "Other programs use more than 20 % of the memory of 2 GPUs there."
    )
    running = queued(1)
    record_gpus(name="gpu@a", gpus=[full[0] | {"free_bytes": 80}, full[1]], cpu_places=0)
    assert dispatcher.place_experiments() == 1
    record_gpus(name="gpu@a", gpus=full, cpu_places=0)
    assert why_waiting(waits).endswith(
        f"Running there: #{running.pk}. Other programs use more than 20 % of the memory of 1 GPU there."
    ), "what our own experiment fills is not another program's"


def test_an_experiment_goes_to_the_host_that_has_enough_and_waits_where_none_has(sent: Sent) -> None:
    worker("gpu@small", num_gpus=2)
    four = queued(4)
    dispatcher.place_experiments()
    assert sent == []
    assert "No gpu worker online can ever run it" in why_waiting(four)
    assert "the most that one has is 2, on gpu@small" in why_waiting(four)
    worker("gpu@large", num_gpus=4)
    dispatcher.place_experiments()
    assert sent == [(four.pk, 1, "gpu@large")]


def test_only_the_worker_that_it_was_placed_on_may_claim_it(sent: Sent) -> None:
    worker("gpu@a", cpu_places=4)
    row = queued(2)
    dispatcher.place_experiments()
    stale = {"experiment_id": row.pk, "attempt_number": 1}
    assert attempts.claim_experiment(worker_name="gpu@b", **stale) is None
    assert attempts.claim_experiment(worker_name="gpu@a", **stale) is not None
    row.refresh_from_db()
    assert (row.status, row.placed_keys) == (ExperimentStatus.STARTING, ["a/cpu0", "a/cpu1"])


def test_a_job_that_no_worker_claims_is_placed_anew(sent: Sent) -> None:
    worker("gpu@a")
    row = queued(1)
    dispatcher.place_experiments()
    Experiment.objects.update(dispatched_at=timezone.now() - timedelta(seconds=30))
    Worker.objects.filter(name="gpu@a").update(status="lost")
    worker("gpu@b")
    dispatcher.place_experiments()
    assert [only for _, _, only in sent] == ["gpu@a", "gpu@b"]
    assert attempts.claim_experiment(experiment_id=row.pk, attempt_number=1, worker_name="gpu@a") is None


def test_what_could_not_be_sent_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_args: object, **_values: object) -> None:
        raise OperationalError("Redis is away")

    monkeypatch.setattr(dispatcher, "send_job", away)
    worker("gpu@a")
    row = queued(1)
    assert dispatcher.place_experiments() == 0
    row.refresh_from_db()
    assert row.dispatched_at is None


def test_those_that_were_passed_are_counted_and_start_anew_once_they_run(sent: Sent) -> None:
    for number in range(2):
        worker(f"gpu{number}@a", num_gpus=4)
    busy = queued(2)
    dispatcher.place_experiments()
    large, small = queued(4), queued(2)
    dispatcher.place_experiments()
    assert [pk for pk, _, _ in sent] == [busy.pk, small.pk]
    large.refresh_from_db()
    assert large.num_passed == 1


def test_a_gpu_that_another_program_uses_is_left_alone(sent: Sent) -> None:
    worker("gpu@a", num_gpus=1)
    reported = gpus(1, "a")
    reported[0]["free_bytes"] = 10
    record_gpus(name="gpu@a", gpus=reported)
    queued(1)
    assert dispatcher.place_experiments() == 0
