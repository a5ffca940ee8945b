"""Attacks from the page and the API, what they keep, and what counts as a patch."""

import json

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from testing.factories import make_task, make_user
from testing.page_text import page_text
from training.contracts.types import Action, ActionKind, Purpose, Task, TrajectoryStatus
from webapp.accounts.models import Role
from webapp.attacks.attackers import attackers_of, files_looked_at
from webapp.attacks.models import Exploit, ScriptedRun
from webapp.attacks.scripts import DONE
from webapp.attacks.services.scripted_runs import MAX_OPEN, note_scripted_run
from webapp.attacks.task_exploits import badges_of, standing_of
from webapp.experiments.models import TaskRecord
from webapp.experiments.services.task_sets import write_tasks
from webapp.tasks_library.flags import scored
from webapp.trajectories.models import Trajectory
from webapp.trajectories.services.trajectories import end_trajectory

pytestmark = pytest.mark.django_db
FILE = "/home/desk/note.txt"
EVALUATOR = {
    "func": "exact_match",
    "result": {"type": "vm_command_line", "command": f"cat {FILE}", "shell": True},
    "expected": {"type": "rule", "rules": {"expected": "red fox\n"}},
}


@pytest.fixture
def team(client: Client):
    user = make_user(Role.OPERATOR)
    client.force_login(user)
    return user.memberships.get().team


@pytest.fixture
def task() -> TaskRecord:
    task = make_task()
    task.spec["evaluator"] = EVALUATOR
    task.save()
    return task


def end_runs(paid: set[str], task: TaskRecord) -> None:
    """As a worker ends them; only those of these names score."""
    for row in Trajectory.objects.filter(task=task, purpose=Purpose.ATTACK, status="queued"):
        run = ScriptedRun.objects.get(group=row.group_id, member=row.member)
        score = float(run.name in paid)
        Trajectory.objects.filter(pk=row.pk).update(status=TrajectoryStatus.EVALUATING)
        end_trajectory(trajectory_id=row.pk, status=TrajectoryStatus.TERMINATED, score=score, reward=score)
        note_scripted_run(Trajectory.objects.get(pk=row.pk))


def test_what_is_paid_is_kept_and_the_next_version_has_to_refuse_it(client, team, task):
    url = f"/tasks/{task.task_set.name}/{task.pk}/attacks/"
    assert client.post(url).status_code == 302
    names = [one.name for one in attackers_of(Task.model_validate(task.spec))]
    assert sorted(ScriptedRun.objects.values_list("name", flat=True)) == sorted(names)
    assert f"{len(names)} runs under way" in page_text(client.get(url))
    weak = f"{FILE} with a line of text"
    end_runs({weak}, task)
    (exploit,) = Exploit.objects.all()
    assert (exploit.name, exploit.task_id, exploit.score) == (weak, task.pk, 1.0)
    assert not scored(team.pk).exists(), "attacks are no tries of the task"
    assert "1 exploit </span>" in page_text(client.get(f"/tasks/{task.task_set.name}/"))
    client.post(url)
    end_runs({weak}, task)
    assert Exploit.objects.count() == 1, "each once"

    changed = Task.model_validate(task.spec | {"evaluator": EVALUATOR | {"wait_s": 1.0}})
    (patch,) = write_tasks(task_set=task.task_set, tasks=[changed]).rows
    api = f"/api/v1/tasks/{task.task_set.name}/{patch.pk}/attacks"
    (known,) = client.get(api).json()["exploits"]
    assert (known["id"], known["run"]) == (exploit.pk, None)
    body = json.dumps({"kind": "check"})
    assert client.post(api, body, "application/json").json() == {"num_queued": 1}
    end_runs(set(), patch)
    answer = client.get(api).json()
    assert answer["exploits"][0]["run"]["result"] == "right"
    assert answer["counts"] is False, "no recorded success was done again"
    assert badges_of(team.pk, [patch])[patch.pk].num_exploits == 0
    assert badges_of(team.pk, [task])[task.pk].num_exploits == 1


def test_a_person_says_that_a_script_does_the_task(client, team, task):
    client.post(f"/tasks/{task.task_set.name}/{task.pk}/attacks/")
    end_runs({"says that it is done"}, task)
    (exploit,) = standing_of(task, team.pk).open_exploits
    client.post(f"/exploits/{exploit.pk}/dismiss/", {"why": "there is nothing to do"})
    assert standing_of(task, team.pk).open_exploits == []
    assert badges_of(team.pk, [task])[task.pk].num_exploits == 0
    client.post(f"/exploits/{exploit.pk}/dismiss/", {"why": ""})
    assert standing_of(task, team.pk).open_exploits == [exploit]


def test_nothing_is_queued_for_a_task_that_cannot_run_or_waits_already(client, team, task):
    url = f"/tasks/{task.task_set.name}/{task.pk}/attacks/"
    page = page_text(client.post(url, {"kind": "check"}, follow=True))
    assert "neither a known exploit nor a recorded success" in page
    for _ in range(MAX_OPEN):
        client.post(url)
    assert 0 < Trajectory.objects.count() <= MAX_OPEN
    TaskRecord.objects.filter(pk=task.pk).update(status="unsupported", reason="no such verb")
    assert "no such verb" in page_text(client.post(url, follow=True))


def test_pages_cost_no_query_more_for_more_exploits(client, team, task):
    client.post(f"/tasks/{task.task_set.name}/{task.pk}/attacks/")

    def num_queries() -> list[int]:
        found = []
        for path in (f"/tasks/{task.task_set.name}/", f"/tasks/{task.task_set.name}/{task.pk}/"):
            with CaptureQueriesContext(connection) as queries:
                assert client.get(path).status_code == 200
            found.append(len(queries))
        return found

    end_runs({"says that it is done"}, task)
    before = num_queries()
    for digest in "abcdef":
        Exploit.objects.create(team=team, task=task, name=digest, script={}, digest=digest, score=1.0)
    assert num_queries() == before


def test_attackers_never_do_a_task_whose_result_is_failing(task):
    spec = Task.model_validate(task.spec)
    assert files_looked_at(spec) == [FILE]
    infeasible = spec.model_copy(update={"evaluator": {"func": "infeasible"}})
    failed = Action(kind=ActionKind.TERMINATE, status="failure")
    assert any(failed in one.script.actions for one in attackers_of(spec))
    scripts = [one.script for one in attackers_of(infeasible)]
    assert all(script.actions[-1] == DONE for script in scripts)
