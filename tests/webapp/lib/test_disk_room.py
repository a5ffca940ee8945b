"""A stop before the disk is full, on a small disk that is really filled: new work waits, and goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.test import Client

from testing.factories import make_experiment, make_group, make_team, make_trajectory, make_user
from testing.small_disk import leave_free, make_room, small_disk
from training.contracts.types import TrajectoryStatus
from webapp.accounts.models import Role
from webapp.dispatcher.disk_watch import DiskWatch
from webapp.dispatcher.services import waiting_trajectories
from webapp.experiments.models import ExperimentStatus
from webapp.experiments.placement.waiting_reasons import why_waiting
from webapp.fleet.services.workers import beat_worker
from webapp.lib.disk_room import Kept, LeastFree, shortage_of_checkpoint, shortages
from webapp.live.models import Event
from webapp.trajectories.models import Trajectory
from workers.env.trajectory_job import claim

MEGABYTE = 1 << 20


@pytest.mark.parametrize(
    ("text", "total", "wanted"),
    [
        ("2GB", 10**12, 2 * 10**9),
        ("500 MiB", 1, 500 << 20),
        ("5%", 1000, 50),
        ("0", 1000, 0),
        ("4096", 1, 4096),
    ],
)
def test_a_watermark_is_a_size_or_a_share(text: str, total: int, wanted: int) -> None:
    assert LeastFree.read(text).of(total) == wanted


@pytest.mark.parametrize("text", ["", "much", "5 %%", "-1%", "100%", "nan%", "-3GB", "2 potatoes"])
def test_another_watermark_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is n"):
        LeastFree.read(text)


@pytest.fixture
def disk(tmp_path: Path, settings) -> Iterator[Path]:
    """Frames and checkpoints on 16 MB of their own, of which 4 MB have to stay free."""
    with small_disk(tmp_path / "disk", 16) as place:
        settings.MEDIA_ROOT = place / "media"
        settings.EXPERIMENTS_DIR = place / "experiments"
        settings.CHECKPOINT_DIRS = [place / "checkpoints"]
        settings.LEAST_FREE = dict.fromkeys(Kept, LeastFree(4 * MEGABYTE)) | {Kept.DATABASE: LeastFree()}
        yield place


def test_what_is_missing_is_told_by_folder(disk: Path) -> None:
    assert shortages() == []
    leave_free(disk, MEGABYTE)
    frames, checkpoints = shortages()
    assert (frames.kept, frames.folder) == (Kept.FRAMES, disk / "media")
    assert checkpoints.folder == disk / "experiments", "two folders of one disk are told once"
    assert frames.missing_bytes == frames.wanted_bytes - frames.free_bytes
    assert str(disk / "media") in str(frames)
    assert "3.1 MB missing" in frames.in_short
    assert shortages(Kept.DATABASE) == []
    make_room(disk)
    assert shortages() == []


def test_a_checkpoint_has_to_fit_beside_what_stays_free(disk: Path) -> None:
    assert shortage_of_checkpoint(disk / "checkpoints", 11 * MEGABYTE) is None
    assert shortage_of_checkpoint(disk / "checkpoints", 13 * MEGABYTE)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    ids: list[int] = []
    monkeypatch.setattr(waiting_trajectories, "send_job", lambda _name, pk, only: ids.append(pk))
    return ids


@pytest.fixture
def waiting(db: None) -> Callable[[], Trajectory]:
    return lambda: make_trajectory(
        group=make_group(experiment=make_experiment()), status=TrajectoryStatus.QUEUED, turns=0
    )


def test_no_trajectory_is_sent_until_there_is_room_again(
    disk: Path, sent: list[int], waiting: Callable[[], Trajectory]
) -> None:
    trajectory = waiting()
    beat_worker(name="env@here", queue="env", host="here", pid=7, slots=2, version="1")
    leave_free(disk, MEGABYTE)
    assert waiting_trajectories.fill_free_slots() == 0
    make_room(disk)
    assert waiting_trajectories.fill_free_slots() == 1
    assert sent == [trajectory.pk]


@pytest.mark.django_db(transaction=True)
def test_an_env_worker_hands_back_what_it_could_not_record(
    disk: Path, waiting: Callable[[], Trajectory]
) -> None:
    trajectory = waiting()
    Trajectory.objects.filter(pk=trajectory.pk).update(sent_at=trajectory.created_at)
    leave_free(disk, MEGABYTE)
    assert claim(trajectory.pk) is None
    trajectory.refresh_from_db()
    assert (trajectory.status, trajectory.sent_at) == (TrajectoryStatus.QUEUED, None)


def test_pages_say_what_is_missing_and_hear_of_the_change(disk: Path, client: Client, db: None) -> None:
    team = make_team()
    client.force_login(make_user(Role.VIEWER, team=team))
    running = make_experiment(team=team, status=ExperimentStatus.RUNNING)
    queued = make_experiment(team=team, status=ExperimentStatus.QUEUED)
    watch = DiskWatch()
    assert not watch.is_short()
    leave_free(disk, MEGABYTE)
    assert watch.is_short()
    assert watch.is_short()
    for path in (f"/experiments/{running.pk}/", "/fleet/"):
        page = client.get(path).content.decode()
        assert "New work waits for disk space" in page
        assert str(disk / "media") in page
    assert "frames in" in why_waiting(queued)
    healthz = client.get("/healthz").json()
    assert healthz["status"] == "waits for disk space"
    assert str(disk) not in str(healthz), "folders are for members"
    make_room(disk)
    assert not watch.is_short()
    events = Event.objects.filter(stream=f"experiment.{running.pk}", type="experiment.updated")
    assert events.count() == 2, "once that it waits, once that it goes on"
    assert "New work waits" not in client.get(f"/experiments/{running.pk}/").content.decode()
    assert client.get("/healthz").json()["status"] == "ok"
