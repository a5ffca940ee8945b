"""Episodes that keep snapshots and episodes that start from one, over an environment that only remembers."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field

import pytest

from testing import first_desk_screens
from testing.factories import make_experiment, make_task
from training.contracts.types import Action, Purpose, Source, Task
from webapp.dispatcher.services import waiting_trajectories
from webapp.experiments.models import TaskRecord
from webapp.fleet.services.workers import beat_worker
from webapp.trajectories.models import Group, SnapshotStatus, Trajectory
from webapp.trajectories.services import branches, snapshots
from webapp.trajectories.services.groups import GroupSpec, create_group
from workers import identity
from workers.desktops.contract import EnvError, ErrorKind
from workers.desktops.frame import Frame
from workers.desktops.host.messages import KeptSnapshot
from workers.desktops.qemu.snapshot_store import SnapshotGone
from workers.env import slots, trajectory_job

pytestmark = pytest.mark.django_db(transaction=True)

DOWN = {"kind": "key", "keys": ["Down"]}
SCRIPT = [DOWN, DOWN, DOWN, {"kind": "terminate", "status": "success"}]


@dataclass
class Machine:
    """A desktop whose whole state is how often Down was pressed."""

    pressed: int = 0
    saved: dict[str, int] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    fails: EnvError | None = None
    """Raised by the next snapshot or wake-up."""
    desktop_id = "d1"
    provider = "qemu"
    is_lost = False
    can_be_saved = True

    def prepare(self, task: Task) -> None:
        self.calls.append("prepare")
        self.pressed = 0

    def observe(self) -> Frame:
        png = first_desk_screens.menu_screen(self.pressed)
        sha = hashlib.sha256(png).hexdigest()
        return Frame(png, 512, 384, sha, sha, time.time(), time.monotonic())

    def act(self, action: Action) -> None:
        self.pressed += 1

    def evaluate(self, task: Task, last_action: Action | None) -> float:
        return float(self.pressed == 3 and last_action is not None)

    def snapshot(self, label: str) -> KeptSnapshot:
        self._fail()
        name = f"s{len(self.saved):016}"
        self.saved[name] = self.pressed
        self.calls.append(label)
        return KeptSnapshot(
            name=name, label=label, size_mb=45, pause_s=0.2, took_s=0.5, created_at=time.time()
        )

    def wake(self, name: str) -> None:
        self._fail()
        self.calls.append(f"wake {name}")
        self.pressed = self.saved[name]

    def _fail(self) -> None:
        if self.fails is not None:
            raise self.fails

    def reset(self) -> None:
        self.pressed = 0

    def close(self) -> None:
        pass


@pytest.fixture
def machine(settings, tmp_path, monkeypatch) -> Machine:
    settings.MEDIA_ROOT = str(tmp_path)
    monkeypatch.setattr(waiting_trajectories, "send_job", lambda _name, _pk, only: None)
    found = Machine()
    monkeypatch.setattr(slots, "clean_environment", lambda *_: found)
    me = identity.current()
    beat_worker(name=me.name, queue="env", host=me.host, pid=me.pid, slots=1, version="1")
    return found


def oracle_task() -> TaskRecord:
    task = make_task()
    TaskRecord.objects.filter(pk=task.pk).update(spec=task.spec | {"oracle": {"actions": SCRIPT}})
    return TaskRecord.objects.get(pk=task.pk)


def run_group(members: int = 0, size: int = 1) -> Group:
    """A group of oracle trajectories, run to their ends; `members` of them keep snapshots."""
    desktops = {"provider": "qemu", "retries": 1, "qemu": {"snapshot_members": members}}
    experiment = make_experiment(config={"desktops": desktops})
    request = GroupSpec(task=oracle_task(), size=size, purpose=Purpose.VERIFICATION, source=Source.ORACLE)
    group = create_group(request=request, team_id=experiment.team_id, experiment=experiment)
    return run_all(group)


def run_all(group: Group) -> Group:
    while queued := group.trajectories.filter(status="queued").first():
        trajectory_job.run(queued.pk)
    return group


def branch_of(parent: Trajectory, turn: int, size: int = 1) -> Group:
    request = branches.BranchRequest(turn=turn, size=size, source=Source.ORACLE)
    return branches.branch_trajectory(trajectory=parent, request=request)


def test_the_first_members_of_a_group_keep_a_snapshot_before_every_turn(machine):
    group = run_group(members=1, size=2)
    first, second = group.trajectories.order_by("member")
    assert list(first.snapshots.values_list("turn", "size_mb")) == [(n, 45.0) for n in range(4)]
    assert [machine.saved[row.name] for row in first.snapshots.all()] == [0, 1, 2, 3]
    assert second.snapshots.count() == 0
    assert (first.status, first.score) == (second.status, second.score) == ("terminated", 1.0)
    assert set(first.snapshots.values_list("host", flat=True)) == {identity.current().host}


def test_nothing_is_saved_unless_somebody_asked(machine):
    run_group()
    assert machine.saved == {}


def test_somebody_may_ask_while_it_runs(machine, monkeypatch):
    act = machine.act

    def ask_after_the_first(action: Action) -> None:
        act(action)
        snapshots.switch_snapshots(trajectory=Trajectory.objects.get(), on=machine.pressed == 1)

    monkeypatch.setattr(machine, "act", ask_after_the_first)
    trajectory = run_group().trajectories.get()
    assert list(trajectory.snapshots.values_list("turn", flat=True)) == [1]


def test_a_branch_goes_on_where_its_parent_was_and_shows_its_parents_turns(machine):
    parent = run_group(members=1).trajectories.get()
    machine.calls.clear()
    group = run_all(branch_of(parent, 2, size=2))
    name = parent.snapshots.get(turn=2).name
    assert [call for call in machine.calls if not call.startswith("trajectory")] == [f"wake {name}"] * 2
    for member in group.trajectories.all():
        assert (member.status, member.score, member.num_turns) == ("terminated", 1.0, 4)
        frames = list(member.turns.values_list("frame", flat=True))
        assert frames == list(parent.turns.values_list("frame", flat=True))
        mine = member.turns.get(index=2)
        assert mine.observed_at > parent.turns.get(index=3).observed_at  # taken anew
    # Its own snapshots begin after the turn from which it was continued: that state is kept already.
    first = group.trajectories.get(member=0)
    assert list(first.snapshots.values_list("turn", flat=True)) == [3]
    deeper = run_all(branch_of(first, 3)).trajectories.get()
    assert (deeper.group.parent, deeper.num_turns, deeper.score) == (first, 4, 1.0)


def test_turns_of_the_parent_count_for_the_limit_of_turns(machine):
    parent = run_group(members=1).trajectories.get()
    experiment = parent.experiment
    config = experiment.config | {"desktops": experiment.config["desktops"] | {"max_turns": 3}}
    type(experiment).objects.filter(pk=experiment.pk).update(config=config)
    member = run_all(branch_of(parent, 2)).trajectories.get()
    assert (member.status, member.num_turns) == ("truncated", 3)


def test_a_snapshot_that_its_host_dropped_ends_the_branch_and_is_gone_for_everybody(machine):
    parent = run_group(members=1).trajectories.get()
    group = branch_of(parent, 1)
    machine.fails = SnapshotGone("snapshot s1 was dropped from this host")
    run_all(group)
    member = group.trajectories.get()  # no second try
    assert (member.status, member.error_kind) == ("errored", "snapshot_gone")
    assert "dropped from this host" in member.error
    assert parent.snapshots.get(turn=1).status == SnapshotStatus.GONE


def test_a_branch_whose_parent_was_deleted_before_it_began_says_so(machine):
    parent = run_group(members=1).trajectories.get()
    group = branch_of(parent, 1)
    parent.delete()
    run_all(group)
    member = group.trajectories.get()
    assert (member.status, member.error_kind) == ("errored", "snapshot_gone")
    assert "deleted with the trajectory" in member.error


def test_a_snapshot_that_fails_for_want_of_room_costs_the_trajectory_nothing(machine):
    machine.fails = EnvError("the disk has 3 MiB left", kind=ErrorKind.QUOTA)
    trajectory = run_group(members=1).trajectories.get()
    assert (trajectory.status, trajectory.score) == ("terminated", 1.0)
    assert "3 MiB left" in trajectory.snapshot_problem
    assert trajectory.snapshots.count() == 0


def test_a_desktop_that_is_lost_over_a_snapshot_is_lost(machine):
    machine.fails = EnvError("QEMU does not answer stop")
    group = run_group(members=1)
    errors = set(group.trajectories.values_list("status", "error_kind"))
    assert errors == {("errored", "desktop_infra")}
    assert group.trajectories.count() == 2  # its place was run again


def redone(parent: Trajectory, turn: int) -> Trajectory:
    """A branch of the oracle without a snapshot, run to its end."""
    request = GroupSpec(
        task=parent.task,
        size=1,
        purpose=Purpose.BRANCH,
        source=Source.ORACLE,
        redone=(parent, turn),
    )
    group = create_group(request=request, team_id=parent.team_id, experiment=parent.experiment)
    return run_all(group).trajectories.order_by("-id")[0]


def test_without_a_snapshot_a_branch_does_the_turns_before_again(machine):
    parent = run_group().trajectories.get()
    acts, act = [], machine.act
    machine.act = lambda action: (acts.append(machine.pressed), act(action))
    branch = redone(parent, 2)
    assert (branch.status, branch.score, branch.error) == ("terminated", 1.0, "")
    assert acts == [0, 1, 2], "two turns of the parent, then its own"
    assert machine.calls == ["prepare", "prepare"]
    frames = [list(row.turns.values_list("frame", flat=True)) for row in (branch, parent)]
    assert frames[0] == frames[1]


def test_a_screen_that_differs_is_another_state_and_scores_nothing(machine):
    parent = run_group().trajectories.get()
    parent.turns.filter(index=2).update(frame="0" * 64)
    branch = redone(parent, 2)
    assert (branch.status, branch.error_kind, branch.reward) == ("errored", "not_reproduced", None)
    assert "before turn 3" in branch.error
    assert redone(parent, 1).score == 1.0, "nothing is compared behind its turn"
