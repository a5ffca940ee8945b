"""Real virtual machines go on from snapshots: exactly as they were, each for itself, and nothing stays.

Needs QEMU and the image that `make guest-image` builds; without them every test says so and is skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from testing.desk_host_process import running_host, start_host, stop_host
from testing.watch_installation import wait_for
from tests.workers.desktops.qemu.test_desktops import OPTIONS, TEMPLATES, ask, leased, pytestmark, qemus
from training.contracts.types import Action
from workers.desktops.contract import DesktopSpec, EnvError, ErrorKind
from workers.desktops.host.client import DeskHostClient
from workers.desktops.leased_desktop import DesktopEnv

__all__ = ["pytestmark"]


@pytest.fixture(scope="module")
def host() -> Iterator[tuple[DeskHostClient, Path]]:
    """A desk host of this module's own, which keeps four snapshots at most, and its folder."""
    folder = Path(tempfile.mkdtemp(prefix="dh-", dir="/tmp"))
    with running_host(folder, *OPTIONS, "--max-snapshots", "4") as client:
        yield client, folder
        client.drop_snapshots(client.snapshots())
        assert list((folder / "snapshots" / "qemu").iterdir()) == []
    assert list((folder / "d").iterdir()) == []
    assert not qemus(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def client(host: tuple[DeskHostClient, Path]) -> DeskHostClient:
    return host[0]


def templates_of_snapshots() -> list[str]:
    metas = [json.loads(path.read_text()) for path in TEMPLATES.glob("*/meta.json")]
    return [meta["key"] for meta in metas if meta.get("snapshot")]


def files(env: DesktopEnv) -> set[str]:
    return set(ask(env, "ls ~ | grep turn").split())


def open_editor(env: DesktopEnv) -> None:
    """A window with a text, and a moment to come to rest: a picture can be compared."""
    env.agent.put("~/turn-0", b"the beginning\n")
    env.agent.launch(["mousepad", f"{env.home}/turn-0"])
    env.wait_for_window("Mousepad", timeout_s=400)
    env.act(Action(kind="key", keys=("End",)))
    env.observe()


def test_a_desktop_wakes_up_exactly_as_it_was_and_every_branch_is_independent(client):
    with leased(client) as parent:
        open_editor(parent)
        kept = []
        for turn in range(1, 3):
            parent.agent.execute(f"echo {turn} > ~/turn-{turn}", shell=True)
            frame = parent.observe()
            kept.append((client_snapshot(parent, turn), frame.raw_digest, files(parent)))
        parent.act(Action(kind="type", text="never seen by a branch"))
        assert parent.observe().raw_digest != kept[-1][1]
        assert files(parent) == {"turn-0", "turn-1", "turn-2"}

        (first, picture, there) = kept[0]
        with leased(client) as one, leased(client) as two:
            one.wake(first.name)
            two.wake(first.name)
            assert one.observe().raw_digest == two.observe().raw_digest == picture
            assert files(one) == files(two) == there == {"turn-0", "turn-1"}
            assert ask(one, "cat ~/turn-0") == "the beginning"
            assert [w.title for w in one.windows() if "Mousepad" in w.title]
            one.act(Action(kind="type", text="one"))
            one.agent.execute("echo here > ~/turn-one", shell=True)
            assert one.observe().raw_digest != picture
            assert two.observe().raw_digest == picture
            assert files(two) == there
            # A branch of a branch: another generation of the same history.
            assert len(templates_of_snapshots()) == 1
            again = client_snapshot(one, 9)
            two.wake(again.name)
            assert files(two) == {"turn-0", "turn-1", "turn-one"}
            assert two.observe().raw_digest == one.observe().raw_digest
            # The parent went on by itself meanwhile.
            assert files(parent) == {"turn-0", "turn-1", "turn-2"}
    client.drop_snapshots(client.snapshots())
    assert client.snapshots() == {}
    assert templates_of_snapshots() == []


def client_snapshot(env: DesktopEnv, turn: int):
    found = env.snapshot(f"a test, turn {turn}")
    assert 0 < found.pause_s <= found.took_s
    assert 0 < found.size_mb < 600
    return found


def test_the_oldest_is_dropped_beyond_the_limit_and_waking_it_up_says_so(client):
    with leased(client) as env:
        names = [env.snapshot(f"number {number}").name for number in range(5)]
        assert set(client.snapshots()) == set(names[1:])
        report = client.watch()
        assert (report.snapshots.count, report.snapshots.max_count) == (4, 4)
        assert report.snapshots.size_mb > 0
        generation = env.lease.desktop.generation
        with pytest.raises(EnvError, match="dropped from this host") as refused:
            env.wake(names[0])
        assert refused.value.permanent
        assert refused.value.kind is ErrorKind.TASK
        assert ask(env, "echo alive") == "alive"  # nothing was torn down for it
        assert env.lease.desktop.generation == generation


def test_another_kind_of_desktop_cannot_wake_up_from_it(client):
    with leased(client) as env:
        name = env.snapshot("512 x 384").name
    lease = client.acquire("x11", DesktopSpec(), holder="test", ttl_s=60)
    with DesktopEnv(client, lease) as other:
        with pytest.raises(EnvError, match="x11 cannot be saved"):
            other.wake(name)
        with pytest.raises(EnvError, match="x11 cannot be saved"):
            other.snapshot("x11")


def test_snapshots_outlive_the_host_that_took_them(short_dir):
    process, client = start_host(short_dir, *OPTIONS)
    with leased(client) as env:
        env.agent.execute("echo 1 > ~/turn-1", shell=True)
        name = env.snapshot("before the end").name
    stop_host(process)
    with running_host(short_dir, *OPTIONS) as client, leased(client) as env:
        assert list(client.snapshots()) == [name]
        env.wake(name)
        assert files(env) == {"turn-1"}
        client.drop_snapshots([name])


def test_a_machine_that_dies_while_it_is_saved_leaves_nothing_behind(host):
    client, folder = host
    with leased(client) as env:
        before = set(client.snapshots())
        pid = next(row.pid for row in client.list() if row.info.desktop_id == env.lease.desktop.desktop_id)
        os.kill(pid, signal.SIGSTOP)  # it cannot answer, so the saving is under way when it dies
        with ThreadPoolExecutor(1) as pool:
            taking = pool.submit(env.snapshot, "never finished")
            making = (folder / "snapshots" / "qemu").glob
            wait_for("the saving", lambda: list(making(".making-*")), poll_s=0.02)
            os.kill(pid, signal.SIGKILL)
            with pytest.raises(EnvError) as lost:
                taking.result(120)
        assert lost.value.kind is ErrorKind.INFRA
        assert not lost.value.permanent
        assert list((folder / "snapshots" / "qemu").glob(".making-*")) == []
        assert set(client.snapshots()) == before
        env.reset()  # the lease goes on with a new machine
        assert files(env) == set()
