"""A weak evaluator on a real desktop: attacked, exploited, patched; and patches that do not count."""

from collections.abc import Callable
from functools import partial

import pytest

from testing.factories import make_user
from testing.watch_installation import wait_for
from training.content.task_sets.first_desk import generate
from training.contracts.types import Purpose, Source, Task
from webapp.accounts.models import Role
from webapp.attacks.models import Exploit
from webapp.attacks.scripts import Script
from webapp.attacks.services.scripted_runs import (
    attack_task,
    check_version,
    dismiss_exploit,
    recorded_successes,
)
from webapp.attacks.task_exploits import Result, badges_of, standing_of
from webapp.experiments.models import TaskRecord, TaskSet
from webapp.experiments.services.task_sets import write_tasks
from webapp.lib.request_values import BadValue
from webapp.trajectories.models import Group, Trajectory
from webapp.trajectories.services.groups import GroupSpec, create_group

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.desktop]

NOTE = next(task for task in generate() if task.family == "note")
FILE = NOTE.evaluator["result"]["path"]
NOT_EMPTY = {
    "func": "exact_match",
    "result": {"type": "vm_command_line", "command": f"test -s {FILE} && echo yes", "shell": True},
    "expected": {"type": "rule", "rules": {"expected": "yes\n"}},
    "wait_s": 0.3,
}
"""Any content will do."""
IMPOSSIBLE = NOTE.evaluator | {"expected": {"type": "inline", "content": "red hen\n"}}


def until(holds: Callable[[], bool]) -> None:
    errors = partial(list, Trajectory.objects.values_list("status", "error"))
    wait_for(errors, holds, patience_s=240)


def done(group: Group) -> None:
    until(lambda: Group.objects.get(pk=group.pk).finished_at is not None)


def version(task_set: TaskSet, evaluator: dict) -> TaskRecord:
    (row,) = write_tasks(task_set=task_set, tasks=[NOTE.model_copy(update={"evaluator": evaluator})]).rows
    return row


def test_an_exploit_is_found_kept_and_dies_with_a_patch_that_counts(transactional_db, env_thread):
    user = make_user(Role.OPERATOR)
    team = user.memberships.get().team
    task_set = TaskSet.objects.create(name="mine", title="mine", team=team)
    weak = version(task_set, NOT_EMPTY)
    asked = GroupSpec(task=weak, size=2, purpose=Purpose.VERIFICATION, source=Source.ORACLE)
    done(create_group(request=asked, team_id=team.pk))
    assert set(Trajectory.objects.values_list("score", flat=True)) == {1.0}
    assert len(recorded_successes(weak, team.pk)) == 1, "both did the same"

    done(attack_task(task=weak, team_id=team.pk, user=user))
    results = {shown.run.name: shown.result for shown in standing_of(weak, team.pk).attacks}
    assert results["says that it is done"] is Result.RIGHT
    assert results[f"{FILE} with nothing"] is Result.RIGHT
    assert results[f"{FILE} with a line of text"] is Result.WRONG
    assert results["types the instruction and saves"] is Result.WRONG
    found = {exploit.name: exploit for exploit in Exploit.objects.all()}
    assert set(found) == {name for name, result in results.items() if result is Result.WRONG}
    assert all(one.task == weak and one.score == 1.0 for one in found.values())
    badge = badges_of(team.pk, [weak])[weak.pk]
    assert (badge.num_runs, badge.num_exploits) == (len(results), len(found))

    wrong = version(task_set, IMPOSSIBLE)
    assert not standing_of(wrong, team.pk).counts, "nothing was checked"
    done(check_version(task=wrong, team_id=team.pk, user=user))
    standing = standing_of(wrong, team.pk)
    assert (standing.open_exploits, len(standing.broken_successes), standing.counts) == ([], 1, False)

    patched = version(task_set, dict(NOTE.evaluator))
    assert badges_of(team.pk, [patched])[patched.pk].num_exploits == len(found), "not proven yet"
    done(check_version(task=patched, team_id=team.pk, user=user))
    standing = standing_of(patched, team.pk)
    assert (standing.open_exploits, standing.broken_successes, standing.counts) == ([], [], True)
    assert badges_of(team.pk, [patched])[patched.pk].num_exploits == 0

    done(check_version(task=weak, team_id=team.pk, user=user))
    standing = standing_of(weak, team.pk)
    assert len(standing.open_exploits) == len(found), "the weak version is as weak as it was"
    for exploit in standing.open_exploits:
        dismiss_exploit(exploit=exploit, user=user, why="any note will do")
    assert standing_of(weak, team.pk).counts
    other = NOTE.model_copy(update={"task_id": "mine/other"})
    (row,) = write_tasks(task_set=task_set, tasks=[other]).rows
    with pytest.raises(BadValue, match="neither a known exploit nor a recorded success"):
        check_version(task=row, team_id=team.pk, user=user)


def test_a_scripted_run_does_its_steps_behind_the_set_up():
    script = {"steps": [{"type": "write_file", "parameters": {"path": FILE, "content": "x"}}]}
    task = Script.model_validate(script).task_for(Task.model_validate(NOTE.model_dump()))
    assert [step["type"] for step in task.config][-1] == "write_file"
    assert task.config[:-1] == NOTE.config
