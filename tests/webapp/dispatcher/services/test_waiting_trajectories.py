"""Who gets the free slots when several experiments and teams wait."""

from datetime import timedelta

import pytest
import redis
from django.core.management import call_command
from django.utils import timezone

from testing.factories import make_experiment, make_group, make_task, make_team, make_trajectory
from training.contracts.types import Purpose, Source, TrajectoryStatus
from webapp.accounts.models import Team
from webapp.dispatcher import place_experiments
from webapp.dispatcher.services import waiting_trajectories
from webapp.experiments.models import Attempt, Experiment, ExperimentStatus
from webapp.experiments.services.attempts import start_attempt
from webapp.fleet.services.workers import beat_worker
from webapp.trajectories.models import Trajectory
from webapp.trajectories.services import groups, trajectories

pytestmark = pytest.mark.django_db


@pytest.fixture
def sent(redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Ids of the trajectories whose jobs were sent, in order."""
    ids: list[int] = []
    monkeypatch.setattr(waiting_trajectories, "send_job", lambda _name, pk, only: ids.append(pk))
    return ids


def experiment_with(
    *, num_desktops: int, waiting: int, team: Team | None = None, priority: int = 0
) -> Experiment:
    """A running experiment with so many queued trajectories; no slots yet, so none is sent."""
    config = {"desktops": {"num_desktops": num_desktops}}
    experiment = make_experiment(team=team or make_team(), config=config, priority=priority)
    for _ in range(waiting):
        request = groups.GroupSpec(task=make_task(), size=1, purpose=Purpose.TRAIN)
        groups.create_group(request=request, team_id=experiment.team_id, experiment=experiment)
    return experiment


def open_slots(number: int) -> None:
    """One worker: `number` jobs may be out, the one at hand included."""
    beat_worker(name="env@here", queue="env", host="here", pid=7, slots=number - 1, version="1")


def counts(sent: list[int]) -> dict[int, int]:
    found: dict[int, int] = {}
    for row in Trajectory.objects.filter(pk__in=sent):
        found[row.experiment_id] = found.get(row.experiment_id, 0) + 1
    return found


def finish(ids: list[int]) -> None:
    rows = Trajectory.objects.filter(pk__in=ids)
    rows.update(status=TrajectoryStatus.TERMINATED, ended_at=timezone.now())


def test_an_older_experiment_at_its_limit_does_not_hold_up_a_younger_one(sent: list[int]) -> None:
    older = experiment_with(num_desktops=2, waiting=40)
    younger = experiment_with(num_desktops=4, waiting=4)
    open_slots(8)
    waiting_trajectories.fill_free_slots()
    assert counts(sent) == {older.pk: 3, younger.pk: 4}  # one more than its desktops is always at hand


def test_slots_are_shared_evenly_whoever_queued_more(sent: list[int]) -> None:
    many = experiment_with(num_desktops=32, waiting=30)
    few = experiment_with(num_desktops=32, waiting=12)
    open_slots(12)
    waiting_trajectories.fill_free_slots()
    assert counts(sent) == {many.pk: 6, few.pk: 6}
    finish([pk for pk in sent if Trajectory.objects.get(pk=pk).experiment_id == few.pk])
    waiting_trajectories.fill_free_slots()
    assert counts(sent) == {many.pk: 6, few.pk: 12}  # freed slots go where fewest are out


def test_what_one_cannot_use_goes_to_the_other(sent: list[int]) -> None:
    few = experiment_with(num_desktops=32, waiting=2)
    many = experiment_with(num_desktops=32, waiting=30)
    open_slots(12)
    waiting_trajectories.fill_free_slots()
    assert counts(sent) == {few.pk: 2, many.pk: 10}


def test_a_higher_priority_is_served_first_up_to_its_desktops(sent: list[int]) -> None:
    usual = experiment_with(num_desktops=32, waiting=20)
    urgent = experiment_with(num_desktops=5, waiting=20, priority=3)
    open_slots(8)
    waiting_trajectories.fill_free_slots()
    assert counts(sent) == {urgent.pk: 6, usual.pk: 2}
    assert Trajectory.objects.get(pk=sent[0]).experiment_id == urgent.pk


def test_a_team_with_two_experiments_gets_no_more_than_a_team_with_one(sent: list[int]) -> None:
    big, small = make_team(), make_team()
    first = experiment_with(num_desktops=32, waiting=20, team=big)
    second = experiment_with(num_desktops=32, waiting=20, team=big)
    only = experiment_with(num_desktops=32, waiting=20, team=small)
    open_slots(8)
    waiting_trajectories.fill_free_slots()
    assert counts(sent) == {first.pk: 2, second.pk: 2, only.pk: 4}


def test_a_person_at_a_desktop_goes_before_everybody(sent: list[int]) -> None:
    experiment_with(num_desktops=32, waiting=20, priority=9)
    person = make_trajectory(
        group=make_group(team=make_team()), turns=0, status=TrajectoryStatus.QUEUED, source=Source.HUMAN
    )
    open_slots(3)
    waiting_trajectories.fill_free_slots()
    assert sent[0] == person.pk


def test_within_an_experiment_the_oldest_goes_first(sent: list[int]) -> None:
    experiment = experiment_with(num_desktops=32, waiting=5)
    open_slots(4)
    waiting_trajectories.fill_free_slots()
    assert sent == sorted(experiment.trajectories.values_list("pk", flat=True))[:4]


def test_a_tick_with_nothing_to_send_asks_once(sent: list[int], django_assert_num_queries) -> None:
    make_experiment(status=ExperimentStatus.RUNNING)
    make_trajectory(status="running", sent_at=timezone.now())
    make_trajectory(status="queued", sent_at=timezone.now())
    open_slots(4)
    with django_assert_num_queries(1):
        assert waiting_trajectories.fill_free_slots() == 0
    with django_assert_num_queries(1):
        assert place_experiments.place_experiments() == 0


def test_a_full_fleet_asks_nothing_more_of_the_database(
    sent: list[int], django_assert_max_num_queries
) -> None:
    experiment_with(num_desktops=32, waiting=10)
    open_slots(4)
    waiting_trajectories.fill_free_slots()
    with django_assert_max_num_queries(3):
        waiting_trajectories.fill_free_slots()
    assert len(sent) == 4


@pytest.mark.parametrize("clock_moved", [timedelta(hours=1), timedelta(hours=-1)], ids=["ahead", "back"])
def test_a_job_that_was_lost_while_the_clock_moved_is_sent_again(
    sent: list[int], clock_moved: timedelta
) -> None:
    experiment_with(num_desktops=2, waiting=1)
    open_slots(2)
    assert waiting_trajectories.fill_free_slots() == 1
    assert waiting_trajectories.resend_forgotten() == 0, "it may be on its way"
    Trajectory.objects.update(sent_at=timezone.now() - clock_moved)
    assert waiting_trajectories.resend_forgotten() == 1
    assert waiting_trajectories.fill_free_slots() == 1


def test_what_a_lost_attempt_asked_for_is_called_off_before_it_uses_up_its_retries(sent: list[int]) -> None:
    experiment = make_experiment(status=ExperimentStatus.RUNNING)
    Attempt.objects.create(experiment=experiment, number=2, worker_name="gpu@here")
    request = groups.GroupSpec(task=make_task(), size=2, purpose=Purpose.TRAIN)
    of_it = {"request": request, "team_id": experiment.team_id, "experiment": experiment}
    group = groups.create_group(**of_it, attempt=2)
    Experiment.objects.update(heartbeat_at=timezone.now() - timedelta(minutes=1))
    call_command("dispatch", "--once")
    assert set(group.trajectories.values_list("status", flat=True)) == {"cancelled"}
    group.refresh_from_db()
    assert group.is_cancelled
    open_slots(8)
    sent.clear()
    waiting_trajectories.fill_free_slots()
    assert sent == []


def test_nothing_is_sent_to_a_policy_server_that_is_still_starting(sent: list[int]) -> None:
    experiment = experiment_with(num_desktops=4, waiting=2)
    attempt = Attempt.objects.create(experiment=experiment, number=1, worker_name="gpu@here")
    open_slots(8)
    waiting_trajectories.fill_free_slots()
    assert sent == []
    start_attempt(attempt=attempt, policy_url="http://127.0.0.1:1", policy_token="token")
    waiting_trajectories.fill_free_slots()
    assert counts(sent) == {experiment.pk: 2}


def test_slots_that_become_free_are_filled_together_on_a_large_fleet(sent: list[int]) -> None:
    experiment_with(num_desktops=20, waiting=12)
    for number in range(4):
        beat_worker(name=f"env{number}@here", queue="env", host="here", pid=7, slots=1, version="1")
    assert waiting_trajectories.fill_free_slots() == 8
    finish(sent[:1])
    assert waiting_trajectories.fill_free_slots(only_many=True) == 0, "three jobs are still at hand"
    finish(sent[1:2])
    assert waiting_trajectories.fill_free_slots(only_many=True) == 2


def test_a_single_worker_gets_its_next_job_with_the_end_of_the_last(
    sent: list[int], django_capture_on_commit_callbacks
) -> None:
    experiment_with(num_desktops=20, waiting=4)
    open_slots(2)
    waiting_trajectories.fill_free_slots()
    Trajectory.objects.filter(pk__in=sent).update(status=TrajectoryStatus.EVALUATING)
    with django_capture_on_commit_callbacks(execute=True):
        trajectories.end_trajectory(
            trajectory_id=sent[0], status=TrajectoryStatus.TERMINATED, score=1, reward=1
        )
    assert len(sent) == 3
