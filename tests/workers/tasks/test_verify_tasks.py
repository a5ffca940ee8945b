"""`manage.py verify_tasks` proves tasks through the queue: real env worker code on a real desktop."""

import pytest
from django.core.management import CommandError, call_command

from training.content.task_sets.first_desk import generate
from training.contracts.types import Source, Task
from webapp.accounts.models import Team
from webapp.experiments.models import TaskRecord
from webapp.experiments.services.task_sets import import_task_set
from webapp.trajectories.models import Trajectory
from webapp.trajectories.queries.desktop_demand import waiting_desktops
from workers import identity
from workers.env.trajectory_job import claim

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.desktop]

TASKS = {task.task_id: task for task in generate()}
MENU, COLOUR = TASKS["first-desk/menu/0000"], TASKS["first-desk/colour/0000"]


@pytest.fixture
def team(transactional_db) -> Team:
    return Team.objects.create(name="Team")


def import_tasks(*tasks: Task) -> None:
    import_task_set(name="first-desk", origin="test", tasks=tasks)


def scores(task: Task) -> tuple[float | None, float | None]:
    row = TaskRecord.objects.get(task_id=task.task_id)
    assert row.verified_at
    return row.oracle_score, row.idle_score


def test_good_tasks_are_noted_as_proven(team, env_thread, capsys):
    import_tasks(MENU, COLOUR)
    call_command("verify_tasks")
    assert scores(MENU) == scores(COLOUR) == (1.0, 0.0)
    out = capsys.readouterr().out
    assert "menu             1 tasks   oracle 1.0:     1   do-nothing 0.0:     1" in out
    oracle = Trajectory.objects.filter(source=Source.ORACLE).first()
    assert oracle.num_turns == len(MENU.oracle["actions"])


def test_a_task_whose_oracle_fails_is_named_and_the_command_fails(team, env_thread, capsys):
    wrong = COLOUR.model_copy(update={"oracle": {"actions": [{"kind": "terminate", "status": "success"}]}})
    import_tasks(MENU, wrong)
    with pytest.raises(CommandError, match="1 of 2 tasks do not hold"):
        call_command("verify_tasks")
    assert "FAILED first-desk/colour/0000: oracle 0.0, idle 0.0" in capsys.readouterr().out
    assert scores(wrong) == (0.0, 0.0)


def test_an_evaluator_that_breaks_is_an_error_and_not_a_zero(team, env_thread, capsys):
    broken = {
        "func": "exact_match",
        "result": {"type": "vm_file", "path": "x"},
        "expected": {"type": "rule", "rules": {}},
    }
    import_tasks(MENU.model_copy(update={"evaluator": broken}))
    with pytest.raises(CommandError, match="1 of 1 tasks do not hold"):
        call_command("verify_tasks")
    assert scores(MENU) == (None, None)
    assert "must be a rule with expected" in capsys.readouterr().out


def test_without_env_workers_the_command_says_so(team):
    import_tasks(MENU)
    with pytest.raises(CommandError, match="are env workers running"):
        call_command("verify_tasks", "--stall", "1")


def test_an_unknown_set_or_family_says_what_to_do(team):
    with pytest.raises(CommandError, match="import it with import_tasks"):
        call_command("verify_tasks", "nothing")
    import_tasks(MENU)
    with pytest.raises(CommandError, match="no tasks of family form that x11 desktops can run"):
        call_command("verify_tasks", "--family", "form")


def test_a_provider_is_asked_for_by_name(team):
    """Which desktops a check asks for; that machines serve them is the virtual machines' tests' matter."""
    import_tasks(COLOUR)
    with pytest.raises(CommandError, match="no task was verified"):
        call_command("verify_tasks", provider="qemu", stall=1)
    assert set(Trajectory.objects.values_list("group__desktops__provider", flat=True)) == {"qemu"}
    assert waiting_desktops() == {("qemu", *COLOUR.screen): 2}
    identity.announce(identity.Identity(name="env1@test", queue="env", slots=1))
    assignment = claim(Trajectory.objects.first().pk)
    assert assignment.config.desktops.provider == "qemu"
