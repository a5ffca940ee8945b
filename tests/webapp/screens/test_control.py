"""Who controls a desktop, until when, and what that does to the trajectory's group."""

from datetime import timedelta

import pytest
from django.utils import timezone

from testing.factories import make_experiment, make_group, make_task, make_team, make_trajectory, make_user
from training.contracts.config import DesktopConfig
from training.contracts.types import Action, Purpose, Source, TrajectoryStatus
from webapp.screens.models import CONTROL_TRANSITIONS, Control, ControlStatus, HumanInput, Screen
from webapp.screens.queries.screens import screen_state, state_of_screen
from webapp.screens.relay_tickets import make_ticket, read_ticket
from webapp.screens.rfb.gestures_to_actions import Gesture
from webapp.screens.services import controls, screens
from webapp.trajectories.models import Trajectory
from webapp.trajectories.row_to_types import group_of
from webapp.trajectories.services.trajectories import end_trajectory, move_trajectory
from webapp.worker_door.assignments import lone_config

pytestmark = pytest.mark.django_db


@pytest.fixture
def team():
    return make_team()


@pytest.fixture
def operator(team):
    return make_user("operator", team=team, name="olga")


@pytest.fixture
def running(team) -> Trajectory:
    """One of two members of a training group, on a desktop that can be watched."""
    group = make_group(experiment=make_experiment(team=team), size=2)
    make_trajectory(group=group, member=1, reward=0.0)
    trajectory = make_trajectory(group=group, member=0, status="running", turns=1, reward=None)
    screens.open_screen(trajectory_id=trajectory.pk, addresses=["unix:/nowhere"])
    return trajectory


def score(trajectory: Trajectory, reward: float) -> None:
    move_trajectory(trajectory=trajectory, to=TrajectoryStatus.EVALUATING)
    end_trajectory(
        trajectory_id=trajectory.pk, status=TrajectoryStatus.TERMINATED, score=reward, reward=reward
    )


def test_every_status_has_its_transitions():
    assert set(CONTROL_TRANSITIONS) == set(ControlStatus)


def test_a_second_person_is_told_who_has_control(running, operator, team):
    control = controls.request_control(trajectory=running, user=operator)
    with pytest.raises(controls.ControlTaken, match="olga controls"):
        controls.request_control(trajectory=running, user=make_user("admin", team=team))
    assert controls.request_control(trajectory=running, user=operator) == control


def test_control_that_nobody_renews_is_free_again(running, operator, team):
    control = controls.request_control(trajectory=running, user=operator)
    Control.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    controls.request_control(trajectory=running, user=make_user("operator", team=team))
    control.refresh_from_db()
    assert control.status == ControlStatus.EXPIRED


@pytest.mark.parametrize("status", ["evaluating", "terminated", "errored", "cancelled"])
def test_only_a_trajectory_that_acts_can_be_taken_over(team, operator, status):
    trajectory = make_trajectory(team=team, status=status)
    with pytest.raises(controls.NotControllable, match="does not run"):
        controls.request_control(trajectory=trajectory, user=operator)


def test_a_desktop_without_a_screen_cannot_be_taken_over(running, operator):
    Screen.objects.all().delete()
    with pytest.raises(controls.NotControllable, match="no screen"):
        controls.request_control(trajectory=running, user=operator)


def test_the_next_desktop_is_held_before_its_agent_begins(running, operator, team):
    """Of a task of a second, a person would come too late."""
    experiment = running.group.experiment
    with pytest.raises(controls.NotControllable, match="about to begin"):
        controls.hold_next(experiment=experiment, user=operator)
    later, sooner = (
        make_trajectory(group=running.group, member=member, status=status, source="policy")
        for member, status in ((1, "queued"), (2, "resetting"))
    )
    held = [controls.hold_next(experiment=experiment, user=operator).trajectory_id for _ in range(2)]
    assert held == [sooner.pk, later.pk]
    assert controls.grant_control(Control.objects.get(trajectory=sooner).pk)


def test_control_over_a_taken_trajectory_makes_it_no_sample_and_runs_its_place_again(running, operator):
    control = controls.request_control(trajectory=running, user=operator)
    running.refresh_from_db()
    assert running.source == Source.POLICY
    assert controls.grant_control(control.pk)
    running.refresh_from_db()
    again = Trajectory.objects.get(retry_of=running)
    assert running.source == Source.HUMAN
    assert (again.status, again.source, again.member, again.tries) == ("queued", "policy", 0, 0)


def test_the_trainer_gets_the_place_that_was_run_again_and_never_the_persons(running, operator):
    group = running.group
    controls.grant_control(controls.request_control(trajectory=running, user=operator).pk)
    other = group.trajectories.get(member=1)
    score(Trajectory.objects.get(pk=running.pk), 1.0)
    group.refresh_from_db()
    assert (group.num_final, group.finished_at, group.reward_mean) == (0, None, None)

    Trajectory.objects.filter(pk=other.pk).update(status="running", reward=None, ended_at=None)
    again = Trajectory.objects.get(retry_of=running)
    Trajectory.objects.filter(pk=again.pk).update(status="running")
    score(other, 0.0)
    score(again, 0.5)
    group.refresh_from_db()
    assert (group.num_final, group.num_scored, group.reward_mean) == (2, 2, 0.25)
    members = group_of(group).trajectories
    assert [member.trajectory_id for member in members] == [again.pk, other.pk]


def test_an_error_under_a_persons_hands_does_not_run_the_place_a_third_time(running, operator):
    controls.grant_control(controls.request_control(trajectory=running, user=operator).pk)
    end_trajectory(trajectory_id=running.pk, status=TrajectoryStatus.ERRORED, error="lost", error_kind="x")
    assert running.group.trajectories.filter(member=0).count() == 2
    running.group.refresh_from_db()
    assert running.group.num_final == 0


def test_a_trajectory_that_was_cancelled_first_is_not_run_again(running, operator):
    control = controls.request_control(trajectory=running, user=operator)
    end_trajectory(trajectory_id=running.pk, status=TrajectoryStatus.CANCELLED)
    controls.grant_control(control.pk)
    assert not Trajectory.objects.filter(retry_of=running).exists()


def test_the_end_of_the_screen_ends_control(running, operator):
    control = controls.request_control(trajectory=running, user=operator)
    screens.close_screen(trajectory_id=running.pk)
    control.refresh_from_db()
    assert control.status == ControlStatus.ENDED
    assert not controls.hand_back_control(control=control)
    assert not controls.attach_connection(control_id=control.pk, user_id=operator.pk, connection="a")


def test_only_its_own_person_can_act_through_a_control(running, operator, team):
    control = controls.request_control(trajectory=running, user=operator)
    stranger = make_user("admin", team=team)
    assert controls.attach_connection(control_id=control.pk, user_id=stranger.pk, connection="b") is None
    assert not controls.renew_control(control_id=control.pk, user_id=stranger.pk)
    attached = controls.attach_connection(control_id=control.pk, user_id=operator.pk, connection="a")
    assert attached is not None
    assert attached.connection == "a"


def test_a_newer_tab_of_the_same_person_drains_only_its_own(running, operator):
    control = controls.request_control(trajectory=running, user=operator)
    for connection in ("first", "second"):
        controls.attach_connection(control_id=control.pk, user_id=operator.pk, connection=connection)
    controls.mark_drained(control_id=control.pk, connection="first")
    control.refresh_from_db()
    assert not control.is_drained
    controls.mark_drained(control_id=control.pk, connection="second")
    control.refresh_from_db()
    assert control.is_drained


def test_a_gesture_is_written_when_it_begins_and_completed_when_it_ends(running, operator):
    control = controls.request_control(trajectory=running, user=operator)
    gesture = Gesture(index=0, began_at=1000.0)
    controls.record_gestures(control_id=control.pk, gestures=[gesture])
    assert HumanInput.objects.get().action is None
    gesture.action, gesture.ended_at = Action(kind="type", text="x"), 1001.0
    controls.record_gestures(control_id=control.pk, gestures=[gesture])
    assert HumanInput.objects.get().action == {"kind": "type", "text": "x"}


def test_a_demonstration_is_a_group_of_one_that_its_person_controls(team, operator):
    control = controls.start_demonstration(task=make_task(), team_id=team.pk, user=operator)
    trajectory = control.trajectory
    assert (trajectory.source, trajectory.purpose) == (Source.HUMAN, Purpose.DEMONSTRATION)
    assert (trajectory.group.size, control.user) == (1, operator)
    Trajectory.objects.update(status="running")
    assert controls.grant_control(control.pk)
    assert Trajectory.objects.count() == 1
    score(trajectory, 1.0)
    trajectory.group.refresh_from_db()
    assert (trajectory.group.num_scored, trajectory.group.reward_mean) == (1, 1.0)


def test_a_ticket_opens_one_trajectorys_screen_for_a_moment(settings, monkeypatch):
    ticket = make_ticket(17)
    assert read_ticket(ticket) == 17
    assert read_ticket(ticket[:-1] + ("A" if ticket[-1] != "A" else "B")) is None
    assert read_ticket("") is None
    monkeypatch.setattr("webapp.screens.relay_tickets.MAX_AGE_S", -1)
    assert read_ticket(ticket) is None
    monkeypatch.undo()
    settings.SECRET_KEY = "of another installation"
    assert read_ticket(ticket) is None


@pytest.mark.parametrize(
    ("desktops", "named"),
    [
        ({"provider": "remote", "remote": {"urls": ["http://10.0.0.5:8100"]}}, "provider remote"),
        ({"provider": "gateway"}, "provider gateway"),
        ({"provider": "osworld", "osworld": {"machines": "docker"}}, "provider docker"),
    ],
)
def test_where_there_are_only_screenshots_nobody_can_act_and_the_provider_is_named(
    team, operator, desktops, named
):
    config = DesktopConfig.model_validate(desktops)
    with pytest.raises(controls.NotControllable, match=named):
        controls.start_demonstration(task=make_task(), team_id=team.pk, user=operator, desktops=config)
    experiment = make_experiment(team=team, config={"desktops": config.model_dump(mode="json")})
    trajectory = make_trajectory(experiment=experiment, status="running", turns=1, reward=None)
    with pytest.raises(controls.NotControllable, match=named):
        controls.request_control(trajectory=trajectory, user=operator)
    assert named in screen_state(trajectory, operator)["noScreen"]
    assert not Control.objects.exists()


def test_a_demonstration_runs_on_the_desktops_that_were_chosen(team, operator):
    config = DesktopConfig.model_validate({"provider": "qemu"})
    wanted = {"team_id": team.pk, "user": operator, "desktops": config}
    control = controls.start_demonstration(task=make_task(), **wanted)
    assert control.trajectory.group.desktops["provider"] == "qemu"
    assert lone_config(control.trajectory.group)["prompt"] == {"observation": ["screenshot"]}
    control = controls.start_demonstration(task=make_task(), **wanted, reads_texts=True)
    parts = lone_config(control.trajectory.group)["prompt"]["observation"]
    assert parts == ["screenshot", "accessibility", "terminal"]


def test_a_screen_whose_worker_is_silent_is_not_watched_any_longer(running):
    """Its desktop may be lent to somebody else before the trajectory is given up."""
    Trajectory.objects.update(heartbeat_at=timezone.now() - timedelta(seconds=5))
    assert state_of_screen(running.pk).is_watchable
    Trajectory.objects.update(heartbeat_at=timezone.now() - timedelta(seconds=8))
    assert not state_of_screen(running.pk).is_watchable
