"""A language model behind a real server writes attackers: what it is told, what of its answer runs."""

import json
from pathlib import Path

import pytest
from django.core.management import call_command
from hypothesis import given
from hypothesis import strategies as st

from testing.factories import make_task, make_user
from testing.hostile_values import json_values
from testing.openai_server import KEY, openai_server
from testing.page_text import page_text
from training.outgoing.secret_grants import add_grant
from webapp.accounts.models import Role
from webapp.attacks.model_attacker import MAX_ACTIONS, read_scripts
from webapp.attacks.models import ModelAttack, ScriptedRun
from webapp.attacks.services.model_attacks import ask_for_attacks
from webapp.dispatcher.work_kinds import kinds
from webapp.lib.long_work import SILENT
from webapp.lib.request_values import BadValue
from webapp.trajectories.models import Trajectory

pytestmark = pytest.mark.django_db(transaction=True)
FILE = "/home/desk/note.txt"
ORACLE = "the-secret-way"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "requests.jsonl"


@pytest.fixture
def world(settings, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """(operator, task, address); the team may send "model-key" there."""
    monkeypatch.setenv("DESKHAND_SECRET_MODEL_KEY", KEY)
    settings.SECRETS_DIR = tmp_path / "secrets"
    user = make_user(Role.OPERATOR)
    task = make_task()
    task.spec["evaluator"] = {
        "func": "exact_match",
        "result": {"type": "vm_file", "path": FILE},
        "expected": {"type": "inline", "content": "red fox"},
    }
    task.spec["oracle"] = {"actions": [{"kind": "type", "text": ORACLE}]}
    task.save()
    with openai_server(log) as url:
        team = user.memberships.get().team
        add_grant(settings.SECRETS_DIR, secret="model-key", team=team.name, urls=[url])
        yield user, task, url


def asked(user, task, url: str, model: str) -> ModelAttack:
    chat = {"url": url, "model": model, "secret": "model-key"}
    team = user.memberships.get().team
    row = ask_for_attacks(task=task, team_id=team.pk, user=user, chat=chat)
    assert kinds["model attack"].next_waiting() == row.pk
    call_command("run_work", "model attack", str(row.pk))
    row.refresh_from_db()
    return row


def test_what_it_writes_runs_and_the_oracle_stays_with_us(client, world, log):
    user, task, url = world
    row = asked(user, task, url, "attacker")
    assert (row.status, row.num_scripts, row.num_prompt_tokens) == ("finished", 2, 100)
    assert "script 3: a step is write_file, not execute" in row.message
    assert "script 4: actions.0.kind" in row.message
    runs = {run.name: run.script for run in ScriptedRun.objects.filter(group=row.group)}
    assert set(runs) == {"model: fills the file", "model: types"}
    assert runs["model: fills the file"]["steps"][0]["parameters"]["path"] == FILE
    assert all(run["actions"][-1]["kind"] == "terminate" for run in runs.values())
    (sent,) = [json.loads(line) for line in log.read_text().splitlines()]
    assert "red fox" in sent["messages"][1]["content"]
    assert ORACLE not in log.read_text()
    client.force_login(user)
    page = page_text(client.get(f"/tasks/{task.task_set.name}/{task.pk}/attacks/"))
    assert "<b>attacker</b> got the question" in page
    assert "2 scripts" in page
    assert "100 + 10 tokens" in page


@pytest.mark.parametrize(
    ("model", "problem"), [("chatty", "no list of scripts in: I would rather"), ("broken", "answered 503")]
)
def test_what_it_cannot_answer_is_said_and_nothing_runs(world, model, problem, monkeypatch):
    monkeypatch.setattr("webapp.lib.chat.chat_server.ATTEMPTS", 1)
    user, task, url = world
    row = asked(user, task, url, model)
    assert row.status == "failed"
    assert problem in row.message
    assert not Trajectory.objects.exists()


def test_it_is_asked_from_the_page_and_once_at_a_time(client, world):
    user, task, url = world
    client.force_login(user)
    path = f"/tasks/{task.task_set.name}/{task.pk}/attacks/"
    form = {"kind": "model", "url": url, "model": "attacker", "secret": "model-key"}
    assert client.post(path, form).status_code == 302
    again = page_text(client.post(path, form, follow=True))
    assert "being asked about this task already" in again
    assert 'data-running="1"' in again
    refused = page_text(client.post(path, form | {"url": "http://192.0.2.1/v1"}, follow=True))
    assert "Nothing was queued" in refused
    ModelAttack.objects.update(status="asking", heartbeat_at="2026-01-01T00:00:00Z")
    row = ModelAttack.objects.get()
    assert kinds["model attack"].next_waiting() == row.pk
    kinds["model attack"].run(row.pk)
    row.refresh_from_db()
    assert (row.status, row.message) == ("failed", f"{SILENT} Ask again."), "asking twice would cost twice"
    assert kinds["model attack"].next_waiting() is None


def test_a_secret_goes_only_where_it_was_granted(world):
    user, task, _ = world
    chat = {"url": "http://127.0.0.1:9/v1", "model": "m", "secret": "model-key"}
    with pytest.raises(BadValue, match="secret"):
        ask_for_attacks(task=task, team_id=user.memberships.get().team_id, user=user, chat=chat)


@given(st.one_of(st.text(), json_values.map(json.dumps), st.lists(json_values).map(json.dumps)))
def test_no_answer_breaks_the_reading(text):
    attackers, _ = read_scripts(text)
    for one in attackers:
        assert len(one.script.actions) <= MAX_ACTIONS + 1
        assert {step["type"] for step in one.script.steps} <= {"write_file"}
