"""The attacks on names and scores by several programs at one moment, on the database's own locks."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from testing.factories import make_team, make_user
from testing.owned_world import Owner, call_table, make_owner, rows_of
from tests.webapp.worker_door.test_ownership import post, send
from webapp.fleet.models import JoinedHost, Worker
from webapp.trajectories.models import TurnRecord
from webapp.worker_door.joined_hosts import joining
from webapp.worker_door.joined_hosts.contract_version import version

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_client")]
AT_ONCE = 6
CHANGING = ("claim_attempt", "record_copy", "grant_control", "stop_worker", "claim", "start_attempt")


def at_once(do: Callable[[int], Any]) -> list[Any]:
    """What each of the calls answered, or raised."""
    together = threading.Barrier(AT_ONCE)

    def one(number: int) -> Any:
        together.wait(30)
        try:
            return do(number)
        except joining.JoinRefused as refused:
            return refused
        finally:
            connection.close()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(one, range(AT_ONCE)))


def token() -> str:
    return joining.make_token(user=make_user("admin"), roles=("env",), team=None)


def join(secret: str, name: str) -> joining.Welcome:
    return joining.join(token=secret.partition(".")[0], name=name, roles=("env",), sent_version=version())


@pytest.fixture
def own() -> Owner:
    return make_owner("ours", make_team())


def test_one_token_lets_one_host_in() -> None:
    secret = token()
    answers = at_once(lambda number: join(secret, f"host{number}"))
    assert sum(isinstance(one, joining.Welcome) for one in answers) == 1, answers
    assert JoinedHost.objects.count() == 1


def test_one_name_is_one_hosts_whatever_its_capitals() -> None:
    secrets = [token() for _ in range(AT_ONCE)]
    answers = at_once(lambda number: join(secrets[number], "Evil" if number % 2 else "evil"))
    (welcome,) = [one for one in answers if isinstance(one, joining.Welcome)]
    assert joining.find_host(welcome.name, welcome.secret) is not None
    assert JoinedHost.objects.count() == 1


def test_a_worker_stays_its_hosts_while_another_beats_under_its_name(own: Owner) -> None:
    evil = make_owner("evil", own.team)
    honest, forged = call_table(own)["beat_worker"], call_table(own)["beat_worker"] | {"host": "evil"}

    def beat(number: int) -> int:
        caller, said = ((own, honest), (evil, honest), (evil, forged))[number % 3]
        return send(caller, "beat_worker", said)[0]

    assert at_once(beat) == [200, 403, 403] * (AT_ONCE // 3)
    worker = Worker.objects.get(name=own.env.name)
    assert (worker.host, worker.is_joined) == ("ours", True)
    own.running.refresh_from_db()
    assert (own.running.worker_id, own.running.status) == (worker.pk, "running")


def test_a_batch_that_comes_many_times_at_once_is_recorded_once(own: Owner) -> None:
    said = [("open_turn", call_table(own)["open_turn"])]
    reports = [
        {"number": number, "name": name, "body": json.dumps(body)}
        for number, (name, body) in enumerate(said, start=1)
    ]
    batch = json.dumps({"stream": "one", "reports": reports}) + "\n"
    assert {one.status_code for one in at_once(lambda _: post(own, "/hosts/reports/", batch))} <= {200, 409}
    assert TurnRecord.objects.filter(trajectory=own.running, index=1).count() == 1
    host = JoinedHost.objects.get(host__name="ours")
    assert (host.received, host.num_refused) == (1, 0)


def test_a_trajectory_ends_once(own: Owner) -> None:
    """Half of the requests score it, half say that it errored; each is a stream of its own."""
    table = call_table(own)

    def end(number: int) -> Any:
        name = "finish" if number % 2 else "end_errored"
        report = {"number": 1, "name": name, "body": json.dumps(table[name])}
        return post(own, "/hosts/reports/", json.dumps({"stream": f"s{number}", "reports": [report]}) + "\n")

    send(own, "begin_evaluating", table["begin_evaluating"])
    at_once(end)
    own.running.refresh_from_db()
    is_scored = own.running.status == "terminated"
    assert own.running.status in ("terminated", "errored")
    assert (own.running.score is not None, own.running.error_kind == "k") == (is_scored, not is_scored)


def test_the_rows_of_others_stay_what_they_are_under_all_calls_at_once(own: Owner) -> None:
    """Each thread makes all of these requests."""
    victim = make_owner("theirs", own.team)
    before = rows_of(victim)
    asked = [(name, call_table(victim)[name]) for name in CHANGING]
    at_once(lambda _: [send(own, name, arguments)[0] for name, arguments in asked])
    assert rows_of(victim) == before
