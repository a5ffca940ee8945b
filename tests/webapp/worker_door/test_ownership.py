"""Every call of the contract, by a joined host, about rows of each kind of owner."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from testing.factories import make_attempt, make_team
from testing.owned_world import SECRET, Owner, call_table, make_owner, rows_of
from webapp.experiments.models import CheckpointRecord
from webapp.fleet.models import Host, JoinedHost
from webapp.lib.remote_calls import Owned, all_calls, call_named
from webapp.worker_door.joined_hosts.contract_version import version

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_client")]

CALLS = sorted(call.name for call in all_calls())
OF_THE_TEAM = {"copied_checkpoint", "read_screenshot"}
"""Hosts that work for a team read its checkpoints' copies and screenshots, whichever host wrote them."""
OF_THE_MACHINE = {
    *("beat_worker", "stop_worker", "begin_anew", "take_jobs", "take_gpu_jobs", "record_gpus"),
    *("claim_mirror", "hand_over_mirror", "record_problem", "record_host", "record_changes", "sample_host"),
    *("take_operations", "end_operation", "wanted_desktops", "record_lost_snapshot", "unknown_snapshots"),
    *("forget_old", "end_remote_desktop"),
}
"""Of the host itself, whichever team it works for."""
BLANK = ([], {}, None, "", False)


@pytest.fixture
def own() -> Owner:
    return make_owner("ours", make_team())


@pytest.fixture
def others(own) -> list[Owner]:
    """A host of the same team, one of another, and the server itself."""
    return [
        make_owner("theirs", own.team),
        make_owner("foreign", make_team()),
        make_owner("server", own.team, is_joined=False),
    ]


def test_each_call_has_its_row_in_the_table(own):
    assert sorted(call_table(own)) == CALLS


CHECKED_INSIDE = {
    "call_gang": {"workers"},
    "begin_anew": {"worker_name"},  # which may have been deleted
    "begin_running": {"desktop_id"},  # that of another host is refused
    "end_remote_desktop": {"desktop_id"},
    "beat_trajectories": {"trajectory_ids"},  # others are left out
    "look_at": {"trajectory_ids"},
}
"""What only the call itself can tell; every other name of a row says by its type whose it has to be."""
NAMES_A_ROW = re.compile(r".*_ids?|workers?|worker_name|by")


def test_each_argument_that_names_a_row_says_whose_it_has_to_be():
    for call in all_calls():
        fields = call.arguments.model_fields
        named = {key for key in fields if NAMES_A_ROW.fullmatch(key)}
        named |= {key for key, field in fields.items() if key == "host" and field.annotation is str}
        unchecked = named - set(call.owned) - CHECKED_INSIDE.get(call.name, set())
        assert unchecked == set(), call.name
    assert {kind for call in all_calls() for kind in call.owned.values()} == set(Owned)


@pytest.mark.parametrize("is_of_one_team", [False, True])
def test_a_host_is_served_for_what_is_its_own(own, is_of_one_team):
    JoinedHost.objects.update(team=own.team if is_of_one_team else None)
    refused = {}
    for call, arguments in call_table(own).items():
        with undone():
            status, answer = send(own, call, arguments)
        if status != 200:
            refused[call] = (status, answer)
    assert refused == {}


def test_a_host_neither_changes_nor_reads_what_others_own(own, others):
    for victim in others:
        before = rows_of(victim)
        for call, arguments in call_table(victim).items():
            with undone():
                status, answer = send(own, call, arguments)
                assert rows_of(victim) == before, f"{call} changed rows of {victim.name}"
            is_shared = call in OF_THE_TEAM and victim.team == own.team
            if arguments and not is_shared:
                assert status in (403, 404) or answer in BLANK, f"{call} of {victim.name}: {answer}"
            if status == 200:
                assert victim.name not in json.dumps(answer) or is_shared, f"{call} told of {victim.name}"


def test_who_took_over_an_experiment_vouches_for_no_copy_of_the_host_before(own, others):
    """Both had an attempt at it: only the one that saved a checkpoint speaks of its copy."""
    before = others[0]
    make_attempt(before.checkpoint.experiment, number=2, worker_name=own.gpu.name)
    CheckpointRecord.objects.filter(pk=before.checkpoint.pk).update(attempt=before.attempt)
    for call in ("record_copy", "forget_copy"):
        status, _ = send(own, call, call_table(before)[call])
        assert status == 403, call
        assert send(before, call, call_table(before)[call])[0] == 200


def test_one_name_of_another_among_its_own_helps_no_host(own, others):
    table, victim = call_table(own), others[0]
    before = rows_of(victim)
    for call, arguments in call_table(victim).items():
        for key, value in arguments.items():
            if value != table[call][key]:
                with undone():
                    send(own, call, table[call] | {key: value})
                    assert rows_of(victim) == before, f"{call} with {key} of {victim.name}"


def test_a_host_of_another_role_and_a_revoked_one_are_refused(own):
    before = rows_of(own)
    for call, arguments in call_table(own).items():
        for role in {"env", "gpu"} - call_named(call).roles:
            with undone():
                JoinedHost.objects.update(roles=[role])
                assert send(own, call, arguments)[0] == 403, call
                assert rows_of(own) == before
        with undone():
            JoinedHost.objects.update(revoked_at=timezone.now())
            assert send(own, call, arguments)[0] == 401, call
            assert rows_of(own) == before


def test_a_host_of_another_team_neither_changes_nor_reads_what_ran_on_it(own):
    """As one that joined again, for another team: what it owned is not inherited."""
    JoinedHost.objects.update(team=make_team())
    before = rows_of(own)
    for call, arguments in call_table(own).items():
        with undone():
            status, answer = send(own, call, arguments)
            if call in OF_THE_MACHINE:
                assert status == 200, f"{call}: {answer}"
                continue
            assert rows_of(own) == before, f"{call} changed rows of another team"
            assert status in (403, 404) or answer in BLANK, f"{call}: {answer}"


@contextmanager
def undone() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def send(caller: Owner, call: str, arguments: dict[str, Any]) -> tuple[int, Any]:
    """Status and answer; a report that was refused as not its own has status 403, another one 500."""
    body, path = json.dumps(arguments), f"/hosts/ask/{call}/"
    is_report = call_named(call).is_report
    if is_report:
        row = JoinedHost.objects.get(host__name=caller.name)
        report = {"number": row.received + 1, "name": call, "body": body}
        path, body = "/hosts/reports/", json.dumps({"stream": "one", "reports": [report]}) + "\n"
    response = post(caller, path, body)
    answer = json.loads(response.content)
    if is_report and response.status_code == 200:
        why = "".join(answer["refused"].values())
        return (403 if why.startswith("NotYours") else 500 if why else 200), why
    return response.status_code, answer


def post(caller: Owner, path: str, body: str) -> HttpResponse:
    headers = {"Authorization": f"Bearer {caller.name}:{SECRET}", "X-Deskhand-Version": version()}
    return Client().post(path, body, content_type="application/json", headers=headers)


def test_a_report_of_a_host_writes_only_what_a_desk_host_knows(own):
    table = call_table(own)
    for values in ({"name": "server"}, {"is_draining": True}, {"mirrored_by": "x"}, {"cores": 2**63}):
        state = table["record_host"]["state"] | {"values": values}
        assert send(own, "record_host", table["record_host"] | {"state": state})[0] == 400
        changes = table["record_changes"]["changes"] | {"values": values}
        assert send(own, "record_changes", table["record_changes"] | {"changes": changes})[0] == 400
    assert Host.objects.get().name == "ours"


def test_of_reports_that_share_a_transaction_each_names_its_own(own, others):
    before, bodies = rows_of(others[0]), [call_table(one)["open_turn"] for one in (own, others[0])]
    reports = [
        {"number": number, "name": "open_turn", "body": json.dumps(body), "trajectory": own.running.pk}
        for number, body in enumerate(bodies, start=1)
    ]
    response = post(own, "/hosts/reports/", json.dumps({"stream": "s", "reports": reports}) + "\n")
    (refused,) = json.loads(response.content)["refused"].items()
    assert (refused[0], refused[1].split(":")[0]) == ("2", "NotYours")
    assert rows_of(others[0]) == before
    assert own.running.turns.count() == 2


def test_a_score_ends_what_its_transaction_may_report(own):
    """Also where the same transaction found the trajectory open before."""
    table, names = call_table(own), ("begin_evaluating", "finish", "record_checks")
    reports = [
        {"number": number, "name": name, "body": json.dumps(table[name]), "trajectory": own.running.pk}
        for number, name in enumerate(names, start=1)
    ]
    response = post(own, "/hosts/reports/", json.dumps({"stream": "s", "reports": reports}) + "\n")
    (refused,) = json.loads(response.content)["refused"].items()
    assert refused == ("3", f"NotYours: trajectory {own.running.pk} has been scored")


def test_a_score_costs_few_statements(own, django_assert_max_num_queries):
    """Each is a millisecond of the one process that serves all joined hosts."""
    send(own, "begin_evaluating", {"trajectory_id": own.running.pk})
    with django_assert_max_num_queries(36):
        assert send(own, "finish", call_table(own)["finish"])[0] == 200


def test_a_queued_trajectory_is_claimed_only_by_the_host_that_was_given_it(own, others):
    claim = call_table(own)["claim"]
    for ticket in ("", "x", call_table(others[0])["claim"]["ticket"]):
        assert send(own, "claim", claim | {"ticket": ticket})[0] == 403
    assert send(own, "claim", claim)[0] == 200


@pytest.mark.parametrize("score", [-0.1, 1.1, 1e308, "NaN"])
def test_a_score_outside_its_range_is_refused(own, score):
    status, why = send(own, "finish", call_table(own)["finish"] | {"score": score})
    assert (status, "score" in why) == (500, True)
    own.running.refresh_from_db()
    assert own.running.status == "running"


def test_the_reward_is_what_the_config_makes_of_what_was_recorded(own):
    forged = {"name": "solved.v1", "value": 1e308, "weight": 1.0, "contribution": 1e308}
    finish = call_table(own)["finish"] | {"score": 0.0, "reward": 1e308, "terms": [forged]}
    send(own, "begin_evaluating", {"trajectory_id": own.running.pk})
    assert send(own, "finish", finish)[0] == 200
    own.running.refresh_from_db()
    assert own.running.status == "terminated"
    assert abs(own.running.reward) <= 1.0
    assert own.running.reward == pytest.approx(sum(term["contribution"] for term in own.running.terms))


def test_a_trajectory_with_its_score_takes_no_further_turn(own):
    table = call_table(own)
    send(own, "begin_evaluating", {"trajectory_id": own.running.pk})
    send(own, "finish", table["finish"])
    before = rows_of(own)
    for call in ("open_turn", "close_turn", "record_final_screen", "record_milestones", "finish"):
        assert send(own, call, table[call])[0] == 403, call
    assert rows_of(own) == before
    assert send(own, "close_screen", table["close_screen"])[0] == 200


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**200])
def test_numbers_that_no_column_holds_are_a_bad_request(own, number):
    assert send(own, "take_away", {"trajectory_id": number, "error": "e"})[0] in (400, 404)
    status, _ = send(own, "end_errored", {"trajectory_id": number, "kind": "k", "error": "e"})
    assert status == 500, "refused, and passed by what follows"
    report = {"number": number, "name": "end_cancelled", "body": "{}"}
    assert (
        post(own, "/hosts/reports/", json.dumps({"stream": "s", "reports": [report]}) + "\n").status_code
        == 400
    )


@pytest.mark.parametrize(
    "address",
    [
        *(
            "unix:/run/redis.sock",
            "tcp:127.0.0.1:5432",
            "tcp:localhost:6379",
            "tcp:[::1]:22",
            "tcp:0.0.0.0:80",
        ),
        *("tcp:169.254.169.254:80", "http://10.0.0.7:80", ""),
    ],
)
def test_no_screen_of_a_host_leads_to_the_server_itself(own, address):
    status, why = send(own, "open_screen", {"trajectory_id": own.running.pk, "addresses": [address]})
    assert status == 403, why


@pytest.mark.parametrize(
    ("url", "certificate"),
    [("http://169.254.169.254", "PEM"), ("https://10.0.0.7", ""), ("file:///x", "PEM")],
)
def test_screenshots_go_to_no_policy_server_without_a_certificate_of_its_own(own, url, certificate):
    start = call_table(own)["start_attempt"] | {"policy_url": url, "policy_certificate": certificate}
    assert send(own, "start_attempt", start)[0] == 403
    own.attempt.refresh_from_db()
    assert own.attempt.policy_url == ""
