"""`Idempotency-Key`: the same POST sent again, or many times at once, does its work once."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.utils import timezone

from testing.factories import make_task, make_team, make_user
from tests.webapp.replay.test_transfer import line
from webapp.accounts.models import Membership, Role, Scope, SentRequest, Team
from webapp.accounts.services.sent_requests import CLAIM_LASTS, KEPT, prune_sent_requests
from webapp.accounts.services.tokens import create_token
from webapp.experiments.models import Experiment
from webapp.experiments.services import experiments

pytestmark = pytest.mark.django_db(transaction=True)
LAUNCH = "/api/v1/experiments"
BODY = {"name": "mine", "preset": "first-desk"}
NUM_EQUAL = 12


@pytest.fixture
def team() -> Team:
    return make_team("red")


@pytest.fixture
def token(team: Team) -> str:
    return create_token(user=make_user(Role.ADMIN, team=team, name="olga"), name="script", scope=Scope.ADMIN)


def post(token: str, key: str, body: Any = None, path: str = LAUNCH, **headers: str) -> Any:
    client = Client(raise_request_exception=False)
    sent = {"authorization": f"Bearer {token}", "idempotency-key": key, **headers}
    return client.post(path, json.dumps(body or BODY), content_type="application/json", headers=sent)


def test_twelve_equal_launches_at_once_make_one_experiment(token: str) -> None:
    """While the first is at work others are refused with what to do; later they get its answer."""
    together = threading.Barrier(NUM_EQUAL)

    def launch(_: int) -> Any:
        together.wait(30)
        try:
            return post(token, "nightly")
        finally:
            connection.close()

    with ThreadPoolExecutor(NUM_EQUAL) as pool:
        answers = list(pool.map(launch, range(NUM_EQUAL)))
    assert Experiment.objects.count() == 1
    made = Experiment.objects.get().pk
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert {answer.json()["id"] for answer in answers if answer.status_code == 201} == {made}
    for refused in (answer for answer in answers if answer.status_code == 409):
        assert "send the same again" in refused.json()["error"]["message"]
        assert refused["Retry-After"]
    assert post(token, "nightly").json()["id"] == made


def test_the_same_again_gets_the_whole_first_answer(token: str) -> None:
    first, again = post(token, "a"), post(token, "a")
    assert (again.status_code, again.content, again["Content-Type"]) == (
        201,
        first.content,
        first["Content-Type"],
    )
    assert "Idempotent-Replayed" not in first
    assert again["Idempotent-Replayed"] == "true"
    assert post(token, "b").json()["id"] != first.json()["id"]


@pytest.mark.parametrize(
    ("body", "path"),
    [(BODY | {"name": "other"}, LAUNCH), (BODY, f"{LAUNCH}/preflight"), (BODY, f"{LAUNCH}?a=1")],
)
def test_a_key_with_another_body_or_address_is_refused(token: str, body: dict[str, str], path: str) -> None:
    post(token, "a")
    answer = post(token, "a", body, path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "key_used")
    assert "send a new key" in answer.json()["error"]["fields"]["Idempotency-Key"]
    assert Experiment.objects.count() == 1


def test_a_key_belongs_to_person_token_and_team(token: str, team: Team) -> None:
    """No one gets another's answer, nor one of another team, nor what a wider token got."""
    blue = make_team("blue")
    olga = Membership.objects.get(user__username="olga").user
    Membership.objects.create(user=olga, team=blue, role=Role.OPERATOR)
    other_person = create_token(user=make_user(Role.OPERATOR, team=team), name="theirs")
    other_token = create_token(user=olga, name="second", scope=Scope.OPERATE)
    answers = [
        post(token, "a"),
        post(other_person, "a"),
        post(other_token, "a"),
        post(token, "a", **{"deskhand-team": "blue"}),
    ]
    assert [answer.status_code for answer in answers] == [201] * 4
    assert len({answer.json()["id"] for answer in answers}) == 4


@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb"])
def test_a_key_that_is_none_is_refused(token: str, key: str) -> None:
    answer = post(token, key)
    assert answer.status_code == 400
    assert "1 to 255 printable" in answer.json()["error"]["fields"]["Idempotency-Key"]
    assert not Experiment.objects.exists()


def test_without_a_good_token_the_answer_is_401_and_nothing_is_kept() -> None:
    assert post("dh_wrong", "a").status_code == 401
    assert not SentRequest.objects.exists()


def test_what_broke_is_done_again_and_what_was_refused_is_not(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(**_: object) -> None:
        raise RuntimeError("broken")

    with monkeypatch.context() as patched:
        patched.setattr(experiments, "queue_experiment", breaks)
        assert post(token, "a").status_code == 500
    assert not SentRequest.objects.exists()
    assert post(token, "a").status_code == 201
    refused = post(token, "b", {"name": "x", "preset": "none-such"})
    assert 400 <= refused.status_code < 500
    assert post(token, "b", {"name": "x", "preset": "none-such"})["Idempotent-Replayed"] == "true"


def test_a_claim_whose_process_died_is_taken_over(token: str) -> None:
    post(token, "a")
    SentRequest.objects.update(status=None, answer=b"")
    assert post(token, "a").status_code == 409
    SentRequest.objects.update(claimed_at=timezone.now() - CLAIM_LASTS)
    assert post(token, "a").status_code == 201
    assert post(token, "a")["Idempotent-Replayed"] == "true"
    assert Experiment.objects.count() == 2


def test_a_day_later_a_key_is_new_and_its_row_goes(token: str) -> None:
    post(token, "a")
    SentRequest.objects.update(claimed_at=timezone.now() - KEPT)
    assert "Idempotent-Replayed" not in post(token, "a")
    assert post(token, "a")["Idempotent-Replayed"] == "true"
    assert prune_sent_requests() == 0
    SentRequest.objects.update(claimed_at=timezone.now() - KEPT - timedelta(seconds=1))
    assert prune_sent_requests() == 1


def test_a_kept_password_cannot_be_read_in_the_database(token: str) -> None:
    body = {"username": "nora", "role": "viewer"}
    first = post(token, "a", body, "/api/v1/team/members")
    password = first.json()["password"]
    row = SentRequest.objects.get()
    assert password.encode() not in bytes(row.answer)
    assert post(token, "a", body, "/api/v1/team/members").json()["password"] == password


def test_a_file_sent_twice_is_imported_once(team: Team, token: str) -> None:
    """Each sending of a form has a boundary of its own; the file and the fields count."""
    task = make_task()

    def send(text: str) -> Any:
        file = SimpleUploadedFile("own.jsonl", text.encode())
        headers = {"authorization": f"Bearer {token}", "idempotency-key": "a"}
        values = {"file": file, "task_set": task.task_set.name}
        return Client().post("/api/v1/replay/imports", values, headers=headers)

    first, again = send(line(task)), send(line(task))
    assert first.status_code == 201, first.content
    assert first.json()["num_new"] == 1
    assert (again.json()["id"], again["Idempotent-Replayed"]) == (first.json()["id"], "true")
    assert send(line(task) + "\n").status_code == 422
