"""Milestones on a real desktop: seen while the oracle works, kept with their turn, shown in the viewer."""

from functools import partial

import pytest

from testing.factories import make_user
from testing.watch_installation import wait_for
from training.content.task_sets.first_desk import generate
from training.contracts.milestone import Milestone
from training.contracts.types import Purpose, Source
from webapp.accounts.models import Role
from webapp.experiments.models import TaskSet
from webapp.experiments.services.task_sets import write_tasks
from webapp.trajectories.models import Group, Trajectory
from webapp.trajectories.services.groups import GroupSpec, create_group

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.desktop]

NOTE = next(task for task in generate() if task.family == "note")
WRITTEN = {key: value for key, value in NOTE.evaluator.items() if key != "wait_s"}
NEVER = WRITTEN | {"result": {"type": "vm_file", "path": "/tmp/no such file"}}
MILESTONES = (Milestone(name="saved", evaluator=WRITTEN), Milestone(name="never", evaluator=NEVER))


def test_a_milestone_is_seen_behind_the_turn_that_reached_it(transactional_db, env_thread, client):
    user = make_user(Role.OPERATOR)
    team = user.memberships.get().team
    task_set = TaskSet.objects.create(name="mine", title="mine", team=team)
    (task,) = write_tasks(task_set=task_set, tasks=[NOTE.model_copy(update={"milestones": MILESTONES})]).rows
    asked = GroupSpec(task=task, size=1, purpose=Purpose.VERIFICATION, source=Source.ORACLE)
    group = create_group(request=asked, team_id=team.pk)
    errors = partial(list, Trajectory.objects.values_list("status", "error"))
    wait_for(errors, lambda: Group.objects.get(pk=group.pk).finished_at, patience_s=240)
    run = Trajectory.objects.get()
    (reached,) = run.milestones
    assert run.score == 1.0
    assert reached["name"] == "saved"
    assert reached["turn"] in (run.num_turns - 2, run.num_turns - 1), "by saving, not by typing"
    client.force_login(user)
    page = client.get(f"/trajectories/{run.pk}/").content.decode()
    assert "1 of 2 reached" in page
    assert f"#turn={reached['turn'] + 1}" in page
    assert "not reached" in page
    assert client.get(f"/trajectories/{run.pk}/summary/").json()["milestones"].count("<li") == 2
