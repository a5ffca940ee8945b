"""Parked trajectories: they wait without a slot, go on by themselves, and never count as failed."""

from dataclasses import replace
from datetime import timedelta

import pytest
import redis
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from testing.factories import make_experiment, make_task, make_team, make_user
from testing.page_text import page_text
from training.contracts.types import Purpose, TrajectoryStatus
from webapp.dispatcher.services import waiting_trajectories
from webapp.experiments.models import Experiment
from webapp.fleet.models import Worker
from webapp.fleet.services.workers import beat_worker
from webapp.live.models import Event
from webapp.trajectories.models import Group, Trajectory
from webapp.trajectories.services import groups, parking, trajectories

pytestmark = pytest.mark.django_db

QUOTA = parking.ParkingNotice(reason="the quota is used up", position=3, wait_s=40.0, retry_after_s=5.0)


def env_worker(name: str = "env@here") -> Worker:
    return beat_worker(name=name, queue="env", host="here", pid=7, slots=4, version="1")


def make_waiting_group(size: int = 1, num_desktops: int = 4) -> Group:
    experiment = make_experiment(team=make_team())
    Experiment.objects.filter(pk=experiment.pk).update(config={"desktops": {"num_desktops": num_desktops}})
    experiment.refresh_from_db()
    request = groups.GroupSpec(task=make_task(), size=size, purpose=Purpose.TRAIN)
    return groups.create_group(request=request, team_id=experiment.team_id, experiment=experiment)


def parked(group: Group | None = None, notice: parking.ParkingNotice = QUOTA) -> Trajectory:
    row = (group or make_waiting_group()).trajectories.filter(status="queued").first()
    Trajectory.objects.filter(pk=row.pk).update(sent_at=timezone.now())
    claimed = trajectories.claim_trajectory(trajectory_id=row.pk, worker=env_worker())
    assert parking.park_trajectory(trajectory=claimed, notice=notice)
    claimed.refresh_from_db()
    return claimed


def make_due(row: Trajectory) -> None:
    Trajectory.objects.filter(pk=row.pk).update(retry_at=timezone.now() - timedelta(seconds=1))


@pytest.fixture
def sent(redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Ids of the trajectories whose jobs were sent."""
    ids: list[int] = []
    monkeypatch.setattr(waiting_trajectories, "send_job", lambda _name, pk, only: ids.append(pk))
    return ids


def test_a_reason_of_a_remote_service_may_hold_anything() -> None:
    row = parked(notice=replace(QUOTA, reason="no room\x00\udcff"))
    assert row.parking["reason"] == "no room\N{SYMBOL FOR NULL}\N{REPLACEMENT CHARACTER}"


def test_it_waits_without_a_slot_and_says_what_for() -> None:
    row = parked()
    assert (row.status, row.worker, row.sent_at, row.ended_at) == ("parked", None, None, None)
    assert (row.parking["position"], row.parking["wait_s"], row.parking["asked"]) == (3, 40.0, 1)
    assert timedelta(seconds=4) < row.retry_at - row.parked_at < timedelta(seconds=7)
    event = Event.objects.filter(stream=f"trajectory.{row.pk}").latest("seq")
    assert (event.payload["status"], event.payload["position"]) == ("parked", 3)


def test_it_is_asked_for_again_only_when_it_is_due(sent: list[int]) -> None:
    row = parked()
    waiting_trajectories.fill_free_slots()
    assert sent == []
    make_due(row)
    waiting_trajectories.fill_free_slots()
    assert sent == [row.pk]
    waiting_trajectories.fill_free_slots()
    assert sent == [row.pk]


@pytest.mark.parametrize("hint_s", [5.0, 86_400.0], ids=["soon", "tomorrow, as the service says"])
def test_a_clock_that_was_set_back_holds_it_up_for_minutes_at_most(sent: list[int], hint_s: float) -> None:
    row = parked(notice=parking.ParkingNotice(reason="full", retry_after_s=hint_s))
    waiting_trajectories.fill_free_slots()
    assert sent == [], "it is not due"
    Trajectory.objects.filter(pk=row.pk).update(retry_at=row.retry_at + timedelta(hours=1))
    waiting_trajectories.fill_free_slots()
    assert sent == [row.pk]


def test_while_it_is_asked_for_it_stays_parked_and_one_worker_has_it(sent: list[int]) -> None:
    row = parked()
    make_due(row)
    waiting_trajectories.fill_free_slots()
    claimed = parking.claim_parked(trajectory_id=row.pk, worker=env_worker())
    assert claimed.status == TrajectoryStatus.PARKED
    assert parking.claim_parked(trajectory_id=row.pk, worker=env_worker("env@there")) is None
    since = row.parked_at
    again = parking.ParkingNotice(reason="still full", position=1)
    assert parking.park_trajectory(trajectory=claimed, notice=again)
    row.refresh_from_db()
    assert (row.parked_at, row.parking["position"], row.parking["asked"]) == (since, 1, 2)


def test_it_goes_on_when_a_desktop_is_there(sent: list[int]) -> None:
    row = parked()
    make_due(row)
    waiting_trajectories.fill_free_slots()
    claimed = parking.claim_parked(trajectory_id=row.pk, worker=env_worker())
    assert parking.unpark_trajectory(trajectory=claimed)
    assert trajectories.move_trajectory(trajectory=claimed, to=TrajectoryStatus.RUNNING)
    row.refresh_from_db()
    assert (row.tries, row.retries.count(), row.started_at is None) == (0, 0, False)


def test_it_can_be_cancelled_also_while_it_is_asked_for(sent: list[int]) -> None:
    waiting, asked = parked(), parked()
    make_due(asked)
    waiting_trajectories.fill_free_slots()
    claimed = parking.claim_parked(trajectory_id=asked.pk, worker=env_worker())
    for row in (waiting, asked):
        groups.cancel_group(group=row.group)
        row.refresh_from_db()
        assert row.status == "cancelled"
        row.group.refresh_from_db()
        assert row.group.finished_at
    assert not parking.unpark_trajectory(trajectory=claimed)
    assert not parking.park_trajectory(trajectory=claimed, notice=QUOTA)
    waiting_trajectories.fill_free_slots()
    assert waiting.pk not in sent


def test_it_keeps_its_place_among_the_experiments_desktops_but_not_among_the_slots(sent: list[int]) -> None:
    env_worker()
    group = make_waiting_group(size=3, num_desktops=1)
    sent.clear()
    row = parked(group)
    waiting_trajectories.fill_free_slots()
    assert len(sent) == 1  # one more than the limit is always at hand; the parked one is the other
    other = make_waiting_group(size=1)
    waiting_trajectories.fill_free_slots()
    assert other.trajectories.first().pk in sent
    make_due(row)
    waiting_trajectories.fill_free_slots()
    assert row.pk in sent


def test_a_worker_that_dies_while_asking_loses_nothing(sent: list[int]) -> None:
    row = parked()
    make_due(row)
    waiting_trajectories.fill_free_slots()
    parking.claim_parked(trajectory_id=row.pk, worker=env_worker())
    trajectories.beat_trajectories([row.pk])
    long_ago = timezone.now() - timedelta(minutes=1)
    Trajectory.objects.filter(pk=row.pk).update(heartbeat_at=long_ago)
    Worker.objects.all().update(heartbeat_at=long_ago)
    env_worker("env@other")
    call_command("dispatch", "--once")
    row.refresh_from_db()
    assert (row.status, row.worker, row.group.trajectories.count()) == ("parked", None, 1)
    assert sent.count(row.pk) == 2


@pytest.mark.parametrize(("asked", "least", "most"), [(1, 1, 2), (3, 4, 8), (9, 30, 60), (10_000, 30, 60)])
def test_without_a_hint_the_pauses_grow(asked: int, least: float, most: float) -> None:
    assert least <= parking.pause_s(None, asked) <= most


def test_a_hint_is_kept_and_never_undercut() -> None:
    assert 7 <= parking.pause_s(7, 50) <= 7.7
    assert parking.pause_s(0, 1) >= parking.SHORTEST_PAUSE_S


def test_a_clock_that_was_set_ahead_is_no_time_that_was_waited() -> None:
    row = parked()
    row.parking["asked_at"] -= 24 * 3600
    assert parking.waited_s(row) < 1000
    row.parking |= {"asked_at": row.parking["asked_at"] + 48 * 3600, "waited_s": 40.0}
    assert parking.waited_s(row) == 40.0


def test_a_hint_of_hours_is_not_waited_for() -> None:
    assert 600 <= parking.pause_s(86_400, 1) <= 660


def test_pages_tell_place_and_time(client: Client) -> None:
    row = parked()
    client.force_login(make_user(team=row.team))
    for path in ("", f"{row.pk}/", f"{row.pk}/status/"):
        page = page_text(client.get(f"/trajectories/{path}"))
        assert "place 4" not in page
        assert "<b>Place 3</b> · about 40 s · waiting for <time" in page
    summary = client.get(f"/trajectories/{row.pk}/summary/").json()
    assert "The quota is used up." in summary["waiting"]
    assert 'data-status="parked"' in summary["figures"]
    assert "Place 3" in page_text(client.get("/trajectories/?status=parked"))
    assert "Place 3" not in page_text(client.get("/trajectories/?status=queued"))
