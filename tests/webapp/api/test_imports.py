"""An import by the API: send a file, read its check, start it, read the report; cancel another one."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from testing.factories import make_task, make_team, make_user
from tests.webapp.replay.test_transfer import line
from webapp.accounts.models import Role
from webapp.accounts.services.tokens import create_token
from webapp.dispatcher.work_kinds import kinds
from webapp.replay.imports import run
from webapp.replay.models import ReplayEntry

pytestmark = pytest.mark.django_db(transaction=True)
IMPORTS = "/api/v1/replay/imports"


@pytest.fixture
def api() -> Client:
    token = create_token(user=make_user(Role.ANNOTATOR, team=make_team()), name="script")
    return Client(enforce_csrf_checks=True, headers={"authorization": f"Bearer {token}"})


def send(api: Client, *lines: str, **values: object):
    file = SimpleUploadedFile("own.jsonl", "\n".join(lines).encode())
    return api.post(IMPORTS, {"file": file, **values})


def test_a_small_file_is_checked_and_stored_within_the_request(api: Client) -> None:
    """A process of its own for 17 bytes took 24 s to start."""
    task = make_task()
    sent = send(api, line(task), "not JSON", task_set=task.task_set.name).json()
    assert (sent["status"], sent["num_new"], sent["num_bad"]) == ("checked", 1, 1)
    started = api.post(f"{IMPORTS}/{sent['id']}/start", content_type="application/json").json()
    assert (started["status"], started["num_stored"]) == ("finished", 1)
    assert ReplayEntry.objects.count() == 1


def test_a_script_sends_reads_the_check_and_starts(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "AT_ONCE_BYTES", 0)
    task = make_task()
    sent = send(api, line(task), line(task, reward=0.1), task_set=task.task_set.name, keep_labels="true")
    assert sent.status_code == 201
    one = f"{IMPORTS}/{sent.json()['id']}"
    assert sent.json()["status"] == "queued"
    early = api.post(f"{one}/start", content_type="application/json")
    assert (early.status_code, early.json()["error"]["code"]) == (409, "conflict")

    kinds["import"].run(sent.json()["id"])
    found = api.get(one).json()
    assert (found["status"], found["num_new"], found["percent"]) == ("checked", 1, 100.0)
    assert found["problems"] == [
        {"line": 2, "reason": "reward: 0.1 is below 0.5; only successes enter the buffer"}
    ]
    assert (found["file_name"], found["keep_labels"]) == ("own.jsonl", True)

    assert api.post(f"{one}/start", content_type="application/json").json()["status"] == "approved"
    kinds["import"].run(sent.json()["id"])
    report = api.get(one).json()
    assert (report["status"], report["num_stored"]) == ("finished", 1)
    assert ReplayEntry.objects.count() == 1
    assert [row["id"] for row in api.get(IMPORTS).json()["items"]] == [sent.json()["id"]]


def test_a_script_cancels(api: Client) -> None:
    task = make_task()
    one = f"{IMPORTS}/{send(api, line(task), task_set=task.task_set.name).json()['id']}"
    assert api.post(f"{one}/cancel", content_type="application/json").json()["status"] == "cancelled"
    assert api.post(f"{one}/cancel", content_type="application/json").status_code == 409


def test_a_wrong_upload_is_refused_by_its_field(api: Client) -> None:
    refused = send(api, "{}", task_set="none")
    assert refused.status_code == 400
    assert set(refused.json()["error"]["fields"]) == {"task_set"}
    missing = api.post(IMPORTS, {"task_set": "none"})
    assert missing.status_code == 422
    assert "file" in str(missing.json()["error"]["fields"])
