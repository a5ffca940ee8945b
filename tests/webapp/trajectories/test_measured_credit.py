"""Measured credit: which continuations are queued, what they may cost, and the values that they give."""

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from testing.factories import make_experiment, make_group, make_team, make_trajectory
from training.contracts.coordinator import FinishedQuery, SampleGroup
from training.contracts.types import Purpose
from webapp.accounts.models import Team
from webapp.experiments.models import Attempt, AttemptStatus, TaskSet
from webapp.trajectories.models import Group, Trajectory
from webapp.trajectories.queries.branches import BranchRefused
from webapp.trajectories.queries.turn_credit import credit_of
from webapp.trajectories.row_to_types import trajectory_of
from webapp.trajectories.services.credit_measures import measure_turns
from webapp.trajectories.services.groups import cancel_groups_of
from webapp.worker_door.trainer_requests.contract import RequestRefused, TrainerCall
from webapp.worker_door.trainer_requests.rollouts import get_finished_groups, sample_group

pytestmark = pytest.mark.django_db


@pytest.fixture
def team() -> Team:
    return make_team()


@pytest.fixture
def lost(team: Team) -> Trajectory:
    """Four turns in ten seconds without a reward, of a policy that still runs; one sibling was paid."""
    experiment = make_experiment(team=team)
    Attempt.objects.create(
        experiment=experiment, number=1, status=AttemptStatus.RUNNING, policy_url="http://127.0.0.1:1"
    )
    group = make_group(experiment=experiment)
    make_trajectory(group=group, reward=1.0, turns=1)
    now = timezone.now()
    return make_trajectory(
        group=group, reward=0.0, turns=4, started_at=now - timedelta(seconds=10), ended_at=now
    )


def test_the_states_before_and_after_each_turn_are_measured_once(lost: Trajectory) -> None:
    found = measure_turns(trajectory=lost, turns=[1, 2], size=3, budget_s=1000)
    assert [(group.branch_turn, group.size, group.parent_id) for group in found.groups] == [
        (1, 3, lost.pk),
        (2, 3, lost.pk),
        (3, 3, lost.pk),
    ]
    assert {group.purpose for group in found.groups} == {Purpose.BRANCH}
    assert found.desktop_s == pytest.approx(90, abs=1)
    member = found.groups[1].trajectories.first()
    assert (member.host, list(member.turns.values_list("index", flat=True))) == ("", [0, 1])


def test_the_budget_is_kept_and_says_what_it_left_out(lost: Trajectory) -> None:
    found = measure_turns(trajectory=lost, turns=[1, 2], size=3, budget_s=65)
    assert ([group.branch_turn for group in found.groups], found.left_out) == ([1, 2], [3])


def test_measured_values_stand_in_place_of_shared_screens(lost: Trajectory) -> None:
    for turn, rewards in ((1, (1.0, 1.0, 1.0, 0.0)), (2, (0.0, 0.0, 0.0, 0.0))):
        group = make_group(experiment=lost.experiment, purpose=Purpose.BRANCH, parent=lost, branch_turn=turn)
        for reward in rewards:
            make_trajectory(group=group, reward=reward)
    values = credit_of(lost.group)[lost.pk]
    assert [(one.turns, one.change) for one in values] == [
        ("Turn 1", 0.25),
        ("Turn 2", -0.75),
        ("Turns 3–4", 0.0),
    ]
    assert [one.is_mistake for one in values] == [False, True, False]
    assert (values[1].num_before, values[1].num_after) == (4, 4)
    again = measure_turns(trajectory=lost, turns=[1], size=3, budget_s=1000)
    assert again.groups == []


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"size": 17}, "size"),
        ({"running": False}, "source"),
        ({"frame": ""}, "turn"),
        ({"status": "running"}, "turn"),
    ],
)
def test_what_cannot_be_measured_is_refused_and_nothing_is_queued(
    lost: Trajectory, change: dict, field: str
) -> None:
    if "running" in change:
        Attempt.objects.update(status=AttemptStatus.FINISHED)
    if "frame" in change:
        lost.turns.filter(index=1).update(frame="")
    if "status" in change:
        Trajectory.objects.filter(pk=lost.pk).update(status="running")
        lost.refresh_from_db()
    with pytest.raises(BranchRefused) as refused:
        measure_turns(trajectory=lost, turns=[1], size=change.get("size", 2), budget_s=1000)
    assert refused.value.field == field
    assert Group.objects.filter(purpose=Purpose.BRANCH).count() == 0


def trainers_branch(lost: Trajectory, turn: int, parent_id: int | None = None) -> tuple[TrainerCall, Group]:
    call = TrainerCall(Attempt.objects.get(experiment=lost.experiment))
    asked = SampleGroup(
        task_id=lost.task.task_id,
        size=2,
        purpose=Purpose.BRANCH,
        step=3,
        parent_id=parent_id or lost.pk,
        branch_turn=turn,
    )
    return call, Group.objects.get(pk=sample_group(call, asked).group_id)


@pytest.fixture
def trains(lost: Trajectory) -> Trajectory:
    """The same, with a task that its experiment names."""
    TaskSet.objects.filter(pk=lost.task.task_set_id).update(name="first-desk")
    return lost


def test_the_trainer_gets_the_branches_that_it_asked_for_and_no_other(trains: Trajectory) -> None:
    call, group = trainers_branch(trains, turn=2)
    assert (group.purpose, group.attempt, group.parent_id, group.branch_turn) == ("branch", 1, trains.pk, 2)
    measured = measure_turns(trajectory=trains, turns=[1], size=2, budget_s=1000).groups[0]
    for one in (group, measured):
        for member in one.trajectories.all():
            Trajectory.objects.filter(pk=member.pk).update(status="terminated", reward=1.0, score=1.0)
        Group.objects.filter(pk=one.pk).update(finished_at=timezone.now(), finished_seq=one.pk)
    (found,) = get_finished_groups(call, FinishedQuery()).groups
    assert (found.group_id, found.parent_id, found.branch_turn) == (group.pk, trains.pk, 2)
    assert [len(member.turns) for member in found.trajectories] == [2, 2], "its parent's are there"
    assert trajectory_of(trains).lasted_s == 10.0


def test_a_branch_of_an_earlier_attempt_ends_with_it_and_a_persons_goes_on(trains: Trajectory) -> None:
    _, group = trainers_branch(trains, turn=2)
    measure_turns(trajectory=trains, turns=[0], size=1, budget_s=1000)
    cancel_groups_of(experiment_id=trains.experiment_id, before_attempt=2)
    ended = Group.objects.filter(purpose=Purpose.BRANCH, is_cancelled=True)
    assert [one.pk for one in ended] == [group.pk]


@pytest.mark.parametrize(
    ("turn", "foreign", "words", "status"), [(9, False, "branch_turn", 409), (1, True, "parent_id", 404)]
)
def test_a_branch_that_cannot_be_is_refused(
    trains: Trajectory, turn: int, foreign: bool, words: str, status: int
) -> None:
    other = make_trajectory(turns=4).pk if foreign else None
    with pytest.raises(RequestRefused, match=words) as refused:
        trainers_branch(trains, turn, other)
    assert refused.value.status == status


def test_the_command_counts_turns_as_pages_do(lost: Trajectory, capsys) -> None:
    call_command("measure_credit", lost.pk, turns=[4], size=2, seconds=25)
    assert "1 groups of 2 are queued, about 20 desktop-seconds" in capsys.readouterr().out
    assert Group.objects.get(purpose=Purpose.BRANCH).branch_turn == 3
    with pytest.raises(CommandError, match="counted from 1"):
        call_command("measure_credit", lost.pk, turns=[0])
    with pytest.raises(CommandError, match="there is none"):
        call_command("measure_credit", 0, turns=[1])
