"""An experiment over several hosts, from its rows: all or none, once each, freed together."""

from __future__ import annotations

import pytest
from django.test import Client

from testing.factories import make_experiment, make_team, make_user
from training.contracts.config import ConfigError, parse_config
from webapp.accounts.models import Role
from webapp.dispatcher import place_experiments as dispatcher
from webapp.experiments.models import Attempt, AttemptStatus, Experiment, ExperimentStatus
from webapp.experiments.placement.waiting_reasons import why_waiting
from webapp.experiments.queries.attempts import crash_limit_reached
from webapp.experiments.queries.gangs import gathering
from webapp.experiments.services import attempts, gangs
from webapp.experiments.services.experiments import resume_experiment
from webapp.fleet.models import Worker
from webapp.fleet.services.workers import beat_worker, record_gpus

pytestmark = pytest.mark.django_db
Sent = list[tuple[int, int, str]]


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    """(experiment, attempt, worker) of the jobs that were sent; Redis itself is not asked."""
    jobs: Sent = []
    monkeypatch.setattr(
        dispatcher, "send_job", lambda _name, pk, number, only: jobs.append((pk, number, only))
    )
    return jobs


def worker(host: str, *, places: int = 2, address: str | None = None) -> None:
    beat_worker(name=f"gpu@{host}", queue="gpu", host=host, pid=1, slots=1, version="1")
    found = f"{host}.example" if address is None else address
    record_gpus(name=f"gpu@{host}", gpus=[], cpu_places=places, address=found)


def queued(processes: int = 4, hosts: int = 2, **values: int) -> Experiment:
    config = {
        "optimiser": {"num_processes": processes, "num_hosts": hosts, **values},
        "checkpoints": {"directory": "/shared"},
        "algorithm": {"group_size": 8, "groups_per_step": 8},
    }
    return make_experiment(team=make_team(), config=config, status=ExperimentStatus.QUEUED)


def claimed(experiment: Experiment, number: int = 1, host: str = "a") -> Attempt:
    attempt = attempts.claim_experiment(
        experiment_id=experiment.pk, attempt_number=number, worker_name=f"gpu@{host}"
    )
    assert attempt is not None
    return attempt


def test_places_of_all_hosts_are_held_and_freed_together(sent: Sent) -> None:
    worker("a")
    experiment = queued()
    assert dispatcher.place_experiments() == 0
    assert "2 places on each of 2 hosts, and 1 of the gpu hosts online could" in why_waiting(experiment)
    worker("b", address="")
    assert dispatcher.place_experiments() == 0
    worker("c")
    assert dispatcher.place_experiments() == 1
    assert sent == [(experiment.pk, 1, "gpu@a")]
    experiment.refresh_from_db()
    assert experiment.placed_keys == ["a/cpu0", "a/cpu1"]
    assert experiment.placed_members == [{"worker": "gpu@c", "keys": ["c/cpu0", "c/cpu1"]}]

    other = queued(processes=1, hosts=1)
    Worker.objects.filter(name="gpu@b").update(status="lost")
    assert dispatcher.place_experiments() == 0
    assert "hold an experiment" in why_waiting(other) or "are free on" in why_waiting(other)

    attempt = claimed(experiment)
    attempts.requeue_after_crash(
        attempt=attempt, status=AttemptStatus.CRASHED, reason="gpu@c did not come", max_restarts=0
    )
    assert dispatcher.place_experiments() == 1
    assert sent[-1][0] == other.pk


@pytest.mark.parametrize("least_hosts", [0, 1])
def test_after_a_loss_it_waits_for_its_hosts_unless_fewer_will_do(least_hosts: int) -> None:
    for host in "ab":
        worker(host)
    experiment = queued(least_hosts=least_hosts)
    assert dispatcher.place_experiments() == 1
    attempt = claimed(experiment)
    Worker.objects.filter(name="gpu@b").update(status="lost")
    attempts.requeue_after_crash(
        attempt=attempt, status=AttemptStatus.CRASHED, reason="host b is gone", max_restarts=3
    )
    assert dispatcher.place_experiments() == least_hosts
    experiment.refresh_from_db()
    if least_hosts:
        assert (experiment.placed_worker, experiment.placed_members) == ("gpu@a", [])
    else:
        assert "1 of the gpu hosts online could take a part" in why_waiting(experiment)


def test_waits_for_hosts_use_no_restarts_up_and_end_with_a_reason() -> None:
    for host in "ab":
        worker(host)
    experiment = queued(least_hosts=1)
    missing = "gpu@b did not come within 60 s"
    for number in range(1, attempts.MAX_GATHERINGS + 1):
        assert dispatcher.place_experiments() == 1
        experiment.refresh_from_db()
        assert len(experiment.placed_members) == 1, "what has not begun begins with all its hosts"
        assert attempts.requeue_incomplete(attempt=claimed(experiment, number), reason=missing) == (
            number < attempts.MAX_GATHERINGS
        )
    experiment.refresh_from_db()
    assert experiment.status == ExperimentStatus.FAILED
    assert experiment.message == (
        f"Failed: its hosts were called 10 times in a row and did not all come. Last reason: {missing}"
    )
    assert not crash_limit_reached(experiment_id=experiment.pk, max_restarts=0)

    assert resume_experiment(experiment=experiment)
    assert dispatcher.place_experiments() == 1
    again = claimed(experiment, attempts.MAX_GATHERINGS + 1)
    assert attempts.requeue_incomplete(attempt=again, reason=missing), "called again, since it was resumed"
    experiment.refresh_from_db()
    assert experiment.message == f"Its hosts will be called again: {missing}"
    assert experiment.incidents.first().title == "Hosts missing"


def test_each_host_comes_once_and_only_while_the_attempt_lasts() -> None:
    attempt = Attempt.objects.create(experiment=queued(), number=1, worker_name="gpu@a")
    gangs.call_gang(attempt=attempt, workers=["gpu@a", "gpu@b", "gpu@c"], secret="pem")

    def come(host: int, name: str, port: int = 1) -> Attempt | None:
        return gangs.join_gang(attempt_id=attempt.pk, host=host, worker_name=name, address=f"{name}:{port}")

    assert come(1, "gpu@c") is None, "called under another number"
    assert (found := come(1, "gpu@b")) is not None
    assert found.gang_secret == "pem"
    assert come(1, "gpu@b") is not None, "it did not get the answer"
    assert come(1, "gpu@b", port=2) is None, "a job that was sent twice"
    assert gathering(attempt.pk).missing == ("gpu@a", "gpu@c")
    gangs.leave_gang(attempt_id=attempt.pk, host=1, problem="no such model")
    gangs.leave_gang(attempt_id=attempt.pk, host=1, problem="something later")
    found = gathering(attempt.pk)
    assert (found.problems, found.has_failed) == (("gpu@b: no such model",), True)
    assert attempt.workers == ["gpu@a", "gpu@b", "gpu@c"]

    attempts.end_attempt(attempt=attempt, status=AttemptStatus.CRASHED)
    assert come(2, "gpu@c") is None
    attempt.refresh_from_db()
    assert attempt.gang_secret == ""


def test_the_page_lists_all_hosts_and_not_their_secret(client: Client) -> None:
    team = make_team()
    client.force_login(make_user(Role.OPERATOR, team=team))
    experiment = make_experiment(team=team)
    attempt = Attempt.objects.create(experiment=experiment, number=1, worker_name="gpu@a")
    gangs.call_gang(attempt=attempt, workers=["gpu@a", "gpu@b"], secret="private key")
    page = client.get(f"/experiments/{experiment.pk}/parts/attempts/").content.decode()
    assert "gpu@a<br>gpu@b" in page
    assert "private key" not in page


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"optimiser": {"num_processes": 3, "num_hosts": 2}}, "optimiser.num_hosts"),
        ({"optimiser": {"num_processes": 2, "num_hosts": 2, "least_hosts": 3}}, "optimiser.least_hosts"),
        ({"optimiser": {"num_processes": 6, "num_hosts": 6, "least_hosts": 5}}, "optimiser.least_hosts"),
        ({"engine": {"name": "sglang"}}, "optimiser.num_hosts"),
        ({"checkpoints": {"directory": ""}}, "checkpoints.directory"),
    ],
)
def test_a_config_that_hosts_cannot_share_is_refused(changes: dict, field: str) -> None:
    possible = {
        "optimiser": {"num_processes": 2, "num_hosts": 2},
        "checkpoints": {"directory": "/shared"},
        "algorithm": {"group_size": 6, "groups_per_step": 1},
    }
    parse_config(possible)
    with pytest.raises(ConfigError) as refused:
        parse_config(possible | changes)
    assert field in str(refused.value)
