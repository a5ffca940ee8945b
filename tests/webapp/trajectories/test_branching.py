"""Branches in the database: what is refused, what is written, whose turns they have, and the tree of them."""

from datetime import timedelta

import pytest
from django.utils import timezone

from testing.factories import (
    make_experiment,
    make_frame,
    make_group,
    make_replay_entry,
    make_task,
    make_team,
    make_trajectory,
)
from training.contracts.config import ExperimentConfig
from training.contracts.types import Purpose, Source, TrajectoryStatus
from webapp.dispatcher.services import waiting_trajectories
from webapp.experiments.models import Attempt, AttemptStatus, TaskRecord
from webapp.fleet.services.workers import beat_worker
from webapp.live.models import Event
from webapp.replay.services.inbox import offer_to_inbox
from webapp.trajectories.models import Group, Snapshot, SnapshotStatus, Trajectory
from webapp.trajectories.queries import branches as branch_queries
from webapp.trajectories.queries import snapshots as snapshot_queries
from webapp.trajectories.queries.branch_tree import tree_of
from webapp.trajectories.queries.branches import BranchRefused
from webapp.trajectories.row_to_types import trajectory_of
from webapp.trajectories.services import branches, snapshots
from webapp.trajectories.services.branches import BranchRequest, branch_trajectory
from webapp.trajectories.services.groups import cancel_groups_of
from webapp.trajectories.services.trajectories import claim_trajectory, end_trajectory
from webapp.worker_door.trajectories import look_at

pytestmark = pytest.mark.django_db

HOST = "machine-a"
CLICK = {"kind": "click", "x": 1, "y": 2}


@pytest.fixture(autouse=True)
def sent(monkeypatch) -> list[tuple[int, str]]:
    """(trajectory, machine) of the jobs that were sent."""
    jobs: list[tuple[int, str]] = []
    monkeypatch.setattr(waiting_trajectories, "send_job", lambda _name, pk, only: jobs.append((pk, only)))
    return jobs


def join(host: str = HOST):
    return beat_worker(name=f"env@{host}", queue="env", host=host, pid=1, slots=4, version="1")


@pytest.fixture
def worker():
    return join()


def qemu_experiment(*, has_policy: bool = True, **values):
    config = ExperimentConfig.model_validate({"desktops": {"provider": "qemu"}})
    experiment = make_experiment(config=config.model_dump(mode="json"), policy_version=7, **values)
    url = "http://127.0.0.1:1" if has_policy else ""
    Attempt.objects.create(experiment=experiment, number=1, status=AttemptStatus.RUNNING, policy_url=url)
    return experiment


def keep(trajectory: Trajectory, *turns: int, host: str = HOST) -> None:
    for turn in turns:
        snapshots.record_snapshot(
            trajectory_id=trajectory.pk,
            turn=turn,
            host=host,
            name=f"s{trajectory.pk:08}{turn:08}",
            size_mb=45.5,
            pause_s=0.2,
            took_s=0.6,
        )


@pytest.fixture
def parent(worker) -> Trajectory:
    """Five turns of a policy on a virtual machine, with snapshots before the second and the third."""
    trajectory = make_trajectory(experiment=qemu_experiment(), turns=5)
    trajectory.turns.filter(index=1).update(parse_error="no action in it")
    keep(trajectory, 1, 2)
    return trajectory


def wanted(turn: int = 2, size: int = 3, **values) -> BranchRequest:
    return BranchRequest(turn=turn, size=size, **values)


# --- what is written ---------------------------------------------------------------------------------


def test_a_branch_is_a_group_of_its_own_whose_members_have_their_parents_turns(parent):
    group = branch_trajectory(trajectory=parent, request=wanted(temperature=0.7))
    assert (group.parent, group.branch_turn, group.purpose) == (parent, 2, Purpose.BRANCH)
    assert (group.size, group.temperature, group.experiment) == (3, 0.7, parent.experiment)
    members = list(group.trajectories.order_by("member"))
    assert [member.member for member in members] == [0, 1, 2]
    for member in members:
        assert (member.status, member.host, member.policy_version) == ("queued", HOST, 7)
        assert (member.num_turns, member.num_parse_errors) == (2, 1)
        own = trajectory_of(member).turns
        assert own == trajectory_of(parent).turns[:2]
        assert own[0].completion.behaviour_logprobs == (-0.1, -0.2, -0.3)
        assert member.last_frame == make_frame(parent.team, 1)
    assert trajectory_of(parent).turns[2].index == 2  # the parent's own rows are untouched


def test_a_branch_from_the_first_turn_has_no_turns_yet(parent):
    keep(parent, 0)
    member = branch_trajectory(trajectory=parent, request=wanted(0, 1)).trajectories.get()
    assert (member.num_turns, member.last_frame) == (0, "")
    assert branch_queries.first_text(member) == parent.task.instruction


def test_the_parents_watchers_and_those_of_the_root_are_told(parent):
    group = branch_trajectory(trajectory=parent, request=wanted())
    member = group.trajectories.first()
    keep(member, 3)
    branch_trajectory(trajectory=member, request=wanted(3, 1))
    events = Event.objects.filter(type="branch.added").values_list("stream", "payload__turn")
    assert sorted(events) == sorted(
        [(f"trajectory.{parent.pk}", 2), (f"trajectory.{parent.pk}", 3), (f"trajectory.{member.pk}", 3)]
    )


def test_the_agent_hears_at_its_first_turn_what_its_parents_agent_heard(parent):
    parent.turns.filter(index=2).update(observation_text="The last action failed: off screen.")
    member = branch_trajectory(trajectory=parent, request=wanted()).trajectories.first()
    assert branch_queries.first_text(member) == "The last action failed: off screen."
    parent.turns.filter(index=2).update(source=Source.HUMAN)
    assert branch_queries.first_text(member) == branch_queries.DESKTOP_WAS_USED


def test_a_branch_of_an_inherited_turn_belongs_to_the_one_whose_turn_it_is(parent):
    member = branch_trajectory(trajectory=parent, request=wanted(2)).trajectories.first()
    assert sorted(snapshot_queries.snapshots_of(member)) == [1, 2]
    again = branch_trajectory(trajectory=member, request=wanted(1, 1))
    assert (again.parent, again.branch_turn) == (parent, 1)


def test_a_place_that_is_run_again_starts_with_the_parents_turns_on_the_same_machine(parent, worker):
    group = branch_trajectory(trajectory=parent, request=wanted(2, 1))
    first = group.trajectories.get()
    claim_trajectory(trajectory_id=first.pk, worker=worker)
    end_trajectory(trajectory_id=first.pk, status=TrajectoryStatus.ERRORED, error="x", error_kind="setup")
    again = group.trajectories.get(tries=1)
    assert (again.num_turns, again.host, again.source) == (2, HOST, Source.POLICY)


def test_a_lost_snapshot_is_no_reason_to_try_again(parent, worker):
    group = branch_trajectory(trajectory=parent, request=wanted(2, 1))
    first = group.trajectories.get()
    claim_trajectory(trajectory_id=first.pk, worker=worker)
    kind = {"error": "gone", "error_kind": "snapshot_gone"}
    end_trajectory(trajectory_id=first.pk, status=TrajectoryStatus.ERRORED, **kind)
    group.refresh_from_db()
    assert group.trajectories.count() == 1
    assert group.finished_at is not None


def test_a_branch_outlives_its_parent_and_says_so(parent):
    group = branch_trajectory(trajectory=parent, request=wanted())
    parent.delete()
    group.refresh_from_db()
    assert (group.parent, group.branch_turn, group.snapshot) == (None, 2, None)
    assert group.trajectories.first().turns.count() == 2


def test_a_success_is_offered_to_the_replay_inbox(parent):
    group = make_group(experiment=parent.experiment, purpose=Purpose.BRANCH, parent=parent, branch_turn=1)
    assert offer_to_inbox(trajectory=make_trajectory(group=group, turns=3, reward=1.0)) is not None
    assert offer_to_inbox(trajectory=make_trajectory(group=group, turns=3, reward=0.0)) is None
    assert make_replay_entry(trajectory=make_trajectory(group=group)).trajectory.group.parent == parent


def test_a_new_attempt_of_the_experiment_leaves_branches_alone_and_its_end_does_not(parent):
    group = branch_trajectory(trajectory=parent, request=wanted())
    train = make_group(experiment=parent.experiment, attempt=1)
    cancel_groups_of(experiment_id=parent.experiment_id, before_attempt=2)
    group.refresh_from_db()
    assert not group.is_cancelled
    train.refresh_from_db()
    assert train.is_cancelled
    cancel_groups_of(experiment_id=parent.experiment_id)
    group.refresh_from_db()
    assert group.is_cancelled


# --- what is refused ---------------------------------------------------------------------------------


def refused(trajectory: Trajectory, request: BranchRequest) -> tuple[str, str]:
    """(field, message); nothing may be half-done."""
    before = Group.objects.count(), Trajectory.objects.count(), Event.objects.count()
    with pytest.raises(BranchRefused) as found:
        branch_trajectory(trajectory=trajectory, request=request)
    assert (Group.objects.count(), Trajectory.objects.count(), Event.objects.count()) == before
    return found.value.field, str(found.value)


@pytest.mark.parametrize("size", [0, -1, 17, 10_000])
def test_more_or_fewer_continuations_than_allowed_are_refused(parent, size):
    field, message = refused(parent, wanted(size=size))
    assert field == "size"
    assert "1 to 16" in message


@pytest.mark.parametrize("temperature", [0.0, -1.0, 2.5, float("nan"), float("inf")])
def test_temperatures_that_are_none_are_refused(parent, temperature):
    assert refused(parent, wanted(temperature=temperature))[0] == "temperature"


def test_a_turn_without_a_snapshot_is_refused_and_names_those_that_have_one(parent):
    field, message = refused(parent, wanted(4))
    assert field == "turn"
    assert "before turn 5" in message
    assert "before turn 2, 3" in message
    assert "has none" in refused(make_trajectory(experiment=parent.experiment), wanted(0))[1]


def test_a_dropped_snapshot_is_refused_by_name_of_its_machine(parent):
    Snapshot.objects.filter(trajectory=parent, turn=2).update(status=SnapshotStatus.GONE)
    field, message = refused(parent, wanted(2))
    assert field == "turn"
    assert f"gone; machine {HOST} dropped it" in message


def test_a_machine_that_is_away_is_refused_by_name(parent):
    other = make_trajectory(experiment=parent.experiment, turns=3)
    keep(other, 1, host="machine-b")
    assert "machine-b, which keeps the snapshot, has no env worker" in refused(other, wanted(1))[1]


def test_without_a_policy_server_the_policy_cannot_go_on(parent):
    Attempt.objects.update(status=AttemptStatus.FINISHED)
    field, message = refused(parent, wanted())
    assert field == "source"
    assert "policy server" in message
    assert branch_queries.candidates(parent)[0].problem


def test_the_oracle_goes_on_from_its_own_turns_only(worker):
    task = make_task()
    TaskRecord.objects.filter(pk=task.pk).update(spec=task.spec | {"oracle": {"actions": [CLICK] * 4}})
    group = make_group(
        experiment=qemu_experiment(has_policy=False),
        task=TaskRecord.objects.get(pk=task.pk),
        source=Source.ORACLE,
        purpose=Purpose.VERIFICATION,
    )
    trajectory = make_trajectory(group=group, turns=5, source=Source.ORACLE)
    trajectory.turns.update(source=Source.ORACLE, completion=None)
    keep(trajectory, 2, 4)
    found = branch_trajectory(trajectory=trajectory, request=wanted(2, 2, source=Source.ORACLE))
    member = found.trajectories.first()
    assert (member.source, member.policy_version) == (Source.ORACLE, None)
    assert branch_queries.first_text(member) == ""
    assert "everything that it knows" in refused(trajectory, wanted(4, source=Source.ORACLE))[1]
    trajectory.turns.filter(index=0).update(source=Source.POLICY)
    assert "from the start only" in refused(trajectory, wanted(2, source=Source.ORACLE))[1]


def test_people_and_scripts_do_not_continue_branches(parent):
    assert "not human" in refused(parent, wanted(source=Source.HUMAN))[1]
    assert "no oracle" in refused(parent, wanted(source=Source.ORACLE))[1]


# --- where they run ----------------------------------------------------------------------------------


def test_a_branch_is_sent_to_the_machine_that_keeps_its_snapshot_and_waits_for_it(
    parent, sent, django_capture_on_commit_callbacks
):
    join("machine-b")
    with django_capture_on_commit_callbacks(execute=True):
        group = branch_trajectory(trajectory=parent, request=wanted(2, 2))
    assert sent == [(pk, HOST) for pk in group.trajectories.order_by("pk").values_list("pk", flat=True)]


def test_a_branch_goes_before_what_was_queued_by_trainers(parent, sent):
    queued = [
        make_trajectory(status=TrajectoryStatus.QUEUED, turns=0, reward=None, experiment=qemu_experiment())
        for _ in range(2)
    ]
    branch = branch_trajectory(trajectory=parent, request=wanted(2, 1)).trajectories.get()
    waiting_trajectories.fill_free_slots()
    assert sent == [(branch.pk, HOST), *((row.pk, "") for row in queued)]


def test_a_branch_of_a_machine_that_does_not_work_is_not_sent_and_holds_up_nobody(parent, sent):
    group = branch_trajectory(trajectory=parent, request=wanted(2, 2))
    group.trajectories.update(host="machine-z")
    other = make_trajectory(status=TrajectoryStatus.QUEUED, turns=0, reward=None)
    sent.clear()
    waiting_trajectories.fill_free_slots()
    assert sent == [(other.pk, "")]
    assert branches.give_up_hostless() == []  # it may come back
    group.trajectories.update(created_at=timezone.now() - timedelta(minutes=5))
    assert len(branches.give_up_hostless()) == 2
    errors = {(row.status, row.error_kind, row.tries) for row in group.trajectories.all()}
    assert errors == {("errored", "host_gone", 0)}


# --- what hosts keep ---------------------------------------------------------------------------------


def test_what_a_host_keeps_no_more_is_gone_and_what_no_row_knows_is_named(parent):
    kept, dropped = parent.snapshots.order_by("turn")
    now = timezone.now()
    long_ago = now.timestamp() - 500
    created = {kept.name: long_ago, "sfffffffffffffff1": long_ago, "sfffffffffffffff2": now.timestamp() - 1}
    orphans = snapshots.unknown_snapshots(HOST, created, now)
    assert orphans == {"sfffffffffffffff1"}  # the young one's row may still be written
    dropped.refresh_from_db()
    assert dropped.status == SnapshotStatus.GONE
    assert Event.objects.filter(type="snapshot.dropped", payload__turn=dropped.turn).count() == 1
    assert snapshots.unknown_snapshots("machine-b", {}, timezone.now()) == set()


def test_a_snapshot_that_was_recorded_after_the_question_is_not_taken_for_gone(parent):
    asked_at = timezone.now() - timedelta(minutes=1)
    assert snapshots.unknown_snapshots(HOST, {}, asked_at) == set()
    assert set(parent.snapshots.values_list("status", flat=True)) == {SnapshotStatus.KEPT}


def test_a_deleted_trajectorys_snapshots_become_orphans(parent):
    names = set(parent.snapshots.values_list("name", flat=True))
    parent.delete()
    now = timezone.now()
    assert snapshots.unknown_snapshots(HOST, dict.fromkeys(names, now.timestamp() - 500), now) == names


def test_snapshots_are_switched_on_for_running_machines_only(parent):
    running = make_trajectory(experiment=parent.experiment, status="running", reward=None)
    for on in (True, False):
        snapshots.switch_snapshots(trajectory=running, on=on)
        assert look_at([running.pk])[running.pk].wants_snapshots is on
    with pytest.raises(snapshots.SnapshotsRefused, match="has ended"):
        snapshots.switch_snapshots(trajectory=parent, on=True)
    plain = make_trajectory(team=make_team(), status="running", reward=None)
    with pytest.raises(snapshots.SnapshotsRefused, match="x11 cannot be saved"):
        snapshots.switch_snapshots(trajectory=plain, on=True)


# --- the tree ----------------------------------------------------------------------------------------


def branch(parent: Trajectory, turn: int, turns: int) -> Trajectory:
    group = make_group(
        experiment=parent.experiment,
        task=parent.task,
        purpose=Purpose.BRANCH,
        parent=parent,
        branch_turn=turn,
    )
    return make_trajectory(group=group, turns=turns)


def test_the_tree_has_every_branch_at_its_turn_and_no_line_crosses_a_row(parent):
    early, late = branch(parent, 1, 3), branch(parent, 3, 6)
    deeper = branch(late, 4, 5)
    tree = tree_of(deeper)
    assert tree.root == parent
    assert [(row.trajectory, row.offset, row.depth) for row in tree.rows] == [
        (parent, 0, 0),
        (late, 3, 1),
        (deeper, 4, 2),
        (early, 1, 1),
    ]
    assert [[cell.turn.index for cell in row.cells] for row in tree.rows] == [
        [0, 1, 2, 3, 4],
        [3, 4, 5],
        [4],
        [1, 2],
    ]
    assert [row.rails for row in tree.rows] == [[], [1], [1], []]
    assert all(rail < row.offset for row in tree.rows for rail in row.rails)
    assert [row.trajectory for row in tree.rows if row.is_watched] == [deeper]
    assert [cell.has_snapshot for cell in tree.rows[0].cells] == [False, True, True, False, False]
    assert tree.num_columns == 6


def test_a_tree_of_many_branches_takes_few_queries(parent, django_assert_max_num_queries):
    for turn in (1, 1, 2, 2, 3):
        branch(branch(parent, turn, 4), 3, 5)
    with django_assert_max_num_queries(12):
        assert len(tree_of(parent).rows) == 11
