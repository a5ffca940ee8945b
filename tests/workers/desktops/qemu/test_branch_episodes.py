"""A real task on a real virtual machine, branched in the middle: every continuation solves it by itself.

Needs QEMU and the image that `make guest-image` builds; without them every test says so and is skipped.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils import timezone

from testing.desk_host_process import running_host
from testing.factories import make_experiment
from testing.watch_installation import wait_for
from tests.workers.desktops.qemu.test_desktops import OPTIONS, pytestmark, qemus
from tests.workers.env.test_branch_episodes import branch_of, run_all
from training.content.task_sets.first_desk import generate
from training.contracts.types import Purpose, Source, Task
from webapp.dispatcher.services import waiting_trajectories
from webapp.experiments.models import TaskRecord
from webapp.experiments.services.task_sets import import_task_set
from webapp.fleet.services.workers import beat_worker
from webapp.trajectories.models import Trajectory
from webapp.trajectories.services.groups import GroupSpec, create_group
from webapp.worker_door.snapshots import unknown_snapshots
from workers import identity
from workers.desktops.host.client import DeskHostClient
from workers.env import slots, trajectory_job

pytestmark = [*pytestmark, pytest.mark.django_db(transaction=True)]
LONGEST = max((task for task in generate() if task.family == "menu"), key=lambda t: len(t.oracle["actions"]))


@pytest.fixture
def host(settings, tmp_path, monkeypatch) -> Iterator[tuple[DeskHostClient, Path]]:
    """A desk host with machines, an env worker in this thread, and nothing left of them afterwards."""
    settings.MEDIA_ROOT = str(tmp_path)
    monkeypatch.setattr(waiting_trajectories, "send_job", lambda _name, _pk, only: None)
    me = identity.current()
    beat_worker(name=me.name, queue="env", host=me.host, pid=me.pid, slots=1, version="1")
    folder = Path(tempfile.mkdtemp(prefix="dh-", dir="/tmp"))
    with running_host(folder, *OPTIONS) as client:
        settings.DESKHOST_SOCKET = client.socket_path
        yield client, folder
        slots.drop_environment()
    assert not qemus(folder)
    assert list((folder / "d").iterdir()) == []
    assert list((folder / "snapshots" / "qemu").iterdir()) == []
    shutil.rmtree(folder, ignore_errors=True)


def solved_parent(task: Task) -> Trajectory:
    desktops = {
        "provider": "qemu",
        "trajectory_timeout_s": 900,
        "max_turns": 16,
        "retries": 0,
        "qemu": {"snapshot_members": 1},
    }
    import_task_set(name="first-desk", origin="test", tasks=[task])
    experiment = make_experiment(config={"desktops": desktops})
    request = GroupSpec(
        task=TaskRecord.objects.get(task_id=task.task_id),
        size=1,
        purpose=Purpose.VERIFICATION,
        source=Source.ORACLE,
    )
    group = create_group(request=request, team_id=experiment.team_id, experiment=experiment)
    trajectory_job.run(group.trajectories.get().pk)
    return group.trajectories.get()


def test_a_task_is_branched_in_the_middle_and_solved_from_there_each_time(host):
    client, folder = host
    parent = solved_parent(LONGEST)
    assert (parent.status, parent.score, parent.error) == ("terminated", 1.0, "")
    assert list(parent.snapshots.values_list("turn", flat=True)) == list(range(parent.num_turns))
    assert set(client.snapshots()) == set(parent.snapshots.values_list("name", flat=True))
    middle = parent.num_turns // 2
    group = run_all(branch_of(parent, middle, size=2))
    for member in group.trajectories.all():
        assert (member.status, member.score, member.error) == ("terminated", 1.0, "")
        assert member.num_turns == parent.num_turns
        # The picture is the very one, to the pixel: the desktop woke up where the parent's was.
        assert member.turns.get(index=middle).frame == parent.turns.get(index=middle).frame
    deeper = run_all(branch_of(group.trajectories.get(member=0), middle + 1)).trajectories.get()
    assert (deeper.score, deeper.error) == (1.0, "")

    # What no row knows any more is dropped, and with it the templates that were made of it.
    Trajectory.objects.all().delete()
    old = {name: kept.model_copy(update={"created_at": 0.0}) for name, kept in client.snapshots().items()}
    created = {kept.name: kept.created_at for kept in old.values()}
    client.drop_snapshots(unknown_snapshots(identity.current().host, created, timezone.now()))
    assert client.snapshots() == {}
    wait_for(lambda: client.watch().leaks, lambda: not client.watch().leaks)
