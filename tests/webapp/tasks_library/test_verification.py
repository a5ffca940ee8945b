"""Oracle and do-nothing runs from a task's page, flaky evaluators, discrimination, launching from here."""

import pytest

from testing.factories import make_experiment, make_group, make_task, make_trajectory
from testing.page_text import page_text
from training.contracts.config import parse_config
from training.contracts.types import Purpose, Source, Task, TrajectoryStatus
from webapp.experiments.models import TaskRecord
from webapp.experiments.services.task_sets import write_tasks
from webapp.launch.preflight.tasks_and_replay import task_checks
from webapp.tasks_library.discrimination import discrimination_of
from webapp.tasks_library.queries.verifications import verification_of
from webapp.tasks_library.services.verifications import MAX_OPEN
from webapp.trajectories.models import Group, Trajectory
from webapp.trajectories.services.trajectories import end_trajectory

pytestmark = pytest.mark.django_db


@pytest.fixture
def team(operator):
    return operator.memberships.get().team


@pytest.fixture
def task() -> TaskRecord:
    task = make_task()
    task.spec["oracle"] = {"actions": [{"kind": "terminate", "status": "success"}]}
    task.save()
    return task


def end(row: Trajectory, score: float, **values) -> None:
    Trajectory.objects.filter(pk=row.pk).update(status=TrajectoryStatus.EVALUATING, **values)
    end_trajectory(trajectory_id=row.pk, status=TrajectoryStatus.TERMINATED, score=score, reward=score)


def test_rounds_are_queued_from_the_page_and_a_flaky_evaluator_is_named(client, team, task):
    url = f"/tasks/{task.task_set.name}/{task.pk}/verification/"
    assert client.post(url, {"rounds": "2"}).status_code == 302
    groups = {group.source: group for group in Group.objects.filter(purpose=Purpose.VERIFICATION)}
    assert {source: group.size for source, group in groups.items()} == {Source.ORACLE: 2, Source.SCRIPTED: 2}
    assert verification_of(task, team.pk).num_running == 4
    check = {"metric": "exact_match", "value": 0.0, "expected": "fox", "got": "", "source": "vm_file"}
    first, second = groups[Source.ORACLE].trajectories.order_by("pk")
    end(first, 1.0)
    end(second, 0.0, checks=[check])
    for row in groups[Source.SCRIPTED].trajectories.all():
        end(row, 0.0)
    task.refresh_from_db()
    assert (task.oracle_score, task.idle_score) == (0.0, 0.0)
    found = verification_of(task, team.pk)
    assert (found.flakes.num_right, found.flakes.num, found.num_running) == (1, 2, 0)
    listed = page_text(client.get(f"/tasks/{task.task_set.name}/"))
    assert "the oracle scored 1 in 1 of 2 runs" in listed
    page = page_text(client.get(url))
    assert "Flaky evaluator" in page
    assert "1 of 2 runs scored 1" in page
    assert "<dd>fox</dd>" in page
    assert "(empty)" in page


def test_a_task_that_cannot_run_or_waits_already_queues_nothing(client, team, task):
    url = f"/tasks/{task.task_set.name}/{task.pk}/verification/"
    for _ in range(MAX_OPEN // 2):
        client.post(url, {"rounds": "1"})
    assert Trajectory.objects.count() == MAX_OPEN
    client.post(url, {"rounds": "1"})
    assert Trajectory.objects.count() == MAX_OPEN
    page = client.post(url, {"rounds": "0"}, follow=True).content.decode()
    assert "Nothing was queued: rounds: &#x27;0&#x27; is not a whole number from 1 to" in page
    assert task.instruction in page
    other = make_task()
    TaskRecord.objects.filter(pk=other.pk).update(status="unsupported", reason="no such verb")
    page = client.post(f"/tasks/{other.task_set.name}/{other.pk}/verification/", follow=True)
    assert "no such verb" in page_text(page)
    assert not Trajectory.objects.filter(task=other).exists()


@pytest.mark.parametrize(("own", "expected"), [([0, 0, 1, 1, 1], 0.9), ([1, 1, 0, 0, 0], -0.9)])
def test_a_task_that_better_policies_solve_discriminates(team, task, own, expected):
    others = [make_task(task_set=task.task_set) for _ in range(4)]
    experiment = make_experiment(team=team)
    for step, score in enumerate(own):
        for place, other in enumerate([task, *others]):
            reward = float(score if other is task else place <= step)
            group = make_group(experiment=experiment, task=other, purpose=Purpose.EVALUATION)
            make_trajectory(group=group, reward=reward, step=step)
    found = discrimination_of(task, team.pk)
    assert found.num_policies == 5
    assert found.value == pytest.approx(expected, abs=0.1)
    assert found.is_weak is (expected < 0)
    assert discrimination_of(make_task(), team.pk).value is None


def test_the_launch_form_begins_with_the_set_and_family(client, team, task):
    page = page_text(client.get(f"/tasks/{task.task_set.name}/", {"family": task.family}))
    query = f"tasks.task_set={task.task_set.name}&amp;tasks.revision=0&amp;tasks.families={task.family}"
    assert query in page
    form = page_text(client.get(f"/experiments/launch/?{query.replace('&amp;', '&')}"))
    assert f'value="{task.task_set.name}"' in form
    assert f'value="{task.family}"' in form


def test_a_clone_of_an_older_revision_is_told_what_it_leaves_out(team, task):
    changed = task.spec | {"instruction": "Another one."}
    write_tasks(task_set=task.task_set, tasks=[Task.model_validate(changed)])
    config = parse_config({"tasks": {"task_set": task.task_set.name, "revision": 1}})
    found = [check for check in task_checks(config, team) if check.path == "tasks.revision"]
    assert [(check.level, check.detail[:32]) for check in found] == [
        ("warning", "1 newer versions of tasks are le")
    ]
