"""Attackers that go on from a turn of a machine: what they find is repeatable without its snapshot."""

import pytest

from testing.factories import make_user
from tests.workers.env.test_branch_episodes import DOWN, machine, run_all, run_group  # noqa: F401
from training.contracts.types import Action
from webapp.attacks.models import Exploit
from webapp.attacks.scripts import Script
from webapp.attacks.services.scripted_runs import attack_fork, check_version
from webapp.attacks.task_exploits import Result, standing_of
from webapp.trajectories.models import Trajectory
from webapp.trajectories.queries.branches import BranchRefused

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def parent(machine, monkeypatch) -> Trajectory:  # noqa: F811
    """Three times Down, kept before every turn; its weak evaluator also pays for more of them."""
    monkeypatch.setattr(machine, "evaluate", lambda _task, _last: float(machine.pressed >= 3))
    return run_group(members=1).trajectories.get()


def results(parent: Trajectory) -> dict[str, Result]:
    shown = standing_of(parent.task, parent.team_id).attacks
    return {one.run.name.partition(",")[0]: one.result for one in shown}


def test_a_paid_fork_is_an_exploit_from_the_start(parent, machine):  # noqa: F811
    user = make_user("operator", team=parent.team)
    group = run_all(attack_fork(trajectory=parent, turn=2, user=user))
    assert {row.turns.filter(index__lt=2).count() for row in group.trajectories.all()} == {2}
    found = results(parent)
    assert found["says that it is done"] is Result.RIGHT
    assert found["presses Enter and saves"] is Result.WRONG
    exploit = Exploit.objects.get(name__startswith="presses Enter and saves, from turn 3")
    script = Script.model_validate(exploit.script)
    assert script.actions[:2] == (Action.model_validate(DOWN),) * 2
    assert [action.kind.value for action in script.actions[2:]] == ["key", "key", "key", "terminate"]
    parent.snapshots.all().delete()
    machine.calls.clear()
    checks = run_all(check_version(task=parent.task, team_id=parent.team_id, user=user))
    assert not [call for call in machine.calls if call.startswith("wake")]
    assert checks.trajectories.get(member=0).score == 1.0, "done again from the start, it is paid again"


def test_where_doing_nothing_is_paid_the_turns_before_had_done_the_task(parent):
    user = make_user("operator", team=parent.team)
    run_all(attack_fork(trajectory=parent, turn=3, user=user))
    assert set(results(parent).values()) == {Result.MOOT}
    assert not Exploit.objects.exists()


def test_it_is_asked_for_in_the_viewer_and_refused_where_no_state_was_kept(parent, client):
    client.force_login(make_user("operator", team=parent.team))
    path = f"/trajectories/{parent.pk}/attacks/"
    answer = client.post(path, {"turn": 1})
    group = Trajectory.objects.exclude(pk=parent.pk).first().group
    assert answer.json() == {"group": group.pk, "tree": f"/groups/{group.pk}/"}
    assert (group.purpose, group.parent, group.branch_turn, group.experiment) == ("attack", parent, 1, None)
    refused = client.post(path, {"turn": 9})
    assert refused.status_code == 409
    assert "No snapshot was kept before turn 10" in refused.json()["error"]
    with pytest.raises(BranchRefused):
        attack_fork(trajectory=parent, turn=9, user=make_user("operator", team=parent.team))
