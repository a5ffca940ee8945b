"""The pool on a real desk host with real desktops, and what operators do to them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from typing import TypeVar

import pytest

from testing import watch_installation
from testing.desk_host_process import running_host
from workers.desktops.contract import DesktopSpec, EnvError, ErrorKind
from workers.desktops.host.client import DeskHostClient
from workers.desktops.host.messages import Phase
from workers.desktops.leased_desktop import DesktopEnv

pytestmark = pytest.mark.desktop
SPEC = DesktopSpec()
PATIENCE_S = 60
T = TypeVar("T")
wait_for = partial(watch_installation.wait_for, poll_s=0.02)


def phases(client: DeskHostClient) -> dict[str, Phase]:
    return {row.info.desktop_id: row.phase for row in client.list()}


def test_a_desktop_that_dies_is_replaced_and_its_holder_gets_the_new_one_without_a_boot(short_dir):
    with running_host(short_dir, "--idle-s", "1") as client:
        lease = client.acquire("x11", SPEC, holder="a", ttl_s=60)
        row = client.list()[0]
        os.kill(row.pid, signal.SIGKILL)
        wait_for("the host notices", lambda: Phase.DEAD in phases(client).values())
        client.release(lease.lease_id)
        ready = wait_for(
            "a new one is ready",
            lambda: [name for name, phase in phases(client).items() if phase is Phase.READY],
        )
        again = client.acquire("x11", SPEC, holder="a", ttl_s=60)
        assert again.desktop.desktop_id in ready
        client.release(again.lease_id)


def test_what_nobody_needs_is_given_up(short_dir):
    with running_host(short_dir, "--idle-s", "0.5", "--warm-limit", "0") as client:
        client.create("x11", SPEC)
        client.create("x11", SPEC)
        wait_for("idle desktops are given up", lambda: client.list() == [])
        assert client.watch().leaks == []


def test_quarantine_takes_a_desktop_from_its_holder_and_keeps_it_as_it_is(short_dir):
    with running_host(short_dir) as client:
        lease = client.acquire("x11", SPEC, holder="env1/t0", ttl_s=60)
        desktop_id = lease.desktop.desktop_id
        env = DesktopEnv(client, lease)
        env.agent.put("~/evidence.txt", b"what happened")
        with pytest.raises(EnvError, match="reason"):
            client.quarantine(desktop_id, " ")
        assert "taken from env1/t0" in client.quarantine(desktop_id, "froze twice")

        with pytest.raises(EnvError, match="expired") as caught:
            env.reset()
        assert caught.value.kind is ErrorKind.QUOTA
        other = client.acquire("x11", SPEC, holder="env1/t0", ttl_s=60)
        assert other.desktop.desktop_id != desktop_id, "it is never leased"
        client.release(other.lease_id)
        row = next(row for row in client.list() if row.info.desktop_id == desktop_id)
        assert (row.phase, row.quarantine) == (Phase.QUARANTINED, "froze twice")
        assert env.agent.get("~/evidence.txt") == b"what happened", "nobody cleaned it"

        os.kill(row.pid, signal.SIGKILL)
        dead = wait_for(
            "its end is noticed",
            lambda: [r for r in client.list() if r.info.desktop_id == desktop_id and r.phase is Phase.DEAD],
        )
        assert dead[0].quarantine == "froze twice", "even dead it is kept"
        client.release_desktop(desktop_id)
        wait_for(
            "released, it is clean again or given up",
            lambda: desktop_id not in phases(client) or phases(client)[desktop_id] is Phase.READY,
        )


def test_an_operator_restarts_and_kills_desktops(short_dir):
    with running_host(short_dir, "--warm-limit", "0") as client:
        lease = client.acquire("x11", SPEC, holder="a", ttl_s=60)
        desktop_id = lease.desktop.desktop_id
        assert client.restart(desktop_id, "restarted by ann") == "generation 2 started"
        row = client.list()[0]
        assert (row.info.generation, row.phase, row.reason) == (2, Phase.LEASED, "restarted by ann")
        env = DesktopEnv(client, client.renew(lease.lease_id))
        assert env.observe().width == 512, "the lease goes on with the new generation"
        assert "taken from a" in client.kill(desktop_id)
        assert client.list() == []
        with pytest.raises(EnvError, match="does not exist"):
            client.kill(desktop_id)


def test_a_draining_host_gives_up_what_is_free_and_leases_nothing_new(short_dir):
    with running_host(short_dir) as client:
        lease = client.acquire("x11", SPEC, holder="a", ttl_s=60)
        client.create("x11", SPEC)
        client.drain(True)
        with pytest.raises(EnvError, match="drained") as caught:
            client.acquire("x11", SPEC, holder="b", ttl_s=60)
        assert caught.value.kind is ErrorKind.QUOTA
        wait_for("the free desktop is given up", lambda: len(client.list()) == 1)
        assert client.renew(lease.lease_id).holder == "a", "leases go on"
        client.release(lease.lease_id)
        wait_for("and it runs empty", lambda: client.list() == [])
        client.drain(False)
        client.acquire("x11", SPEC, holder="b", ttl_s=60)


def test_a_watcher_hears_of_a_change_at_once_and_of_silence_after_its_wait(short_dir):
    with running_host(short_dir, "--warm-limit", "0") as client, DeskHostClient(client.socket_path) as other:
        first = client.watch()
        assert first.desktops == []
        assert first.machine.cores >= 1
        assert first.machine.disk_free_mb > 0
        lease = other.acquire("x11", SPEC, holder="a", ttl_s=60)
        changed = client.watch(after=first.version, wait_s=30)
        assert changed.version > first.version
        assert [row.holder for row in changed.desktops] == ["a"]
        started = time.monotonic()
        assert client.watch(after=10**6, wait_s=0.3).version < 10**6
        assert time.monotonic() - started >= 0.3
        env = DesktopEnv(other, lease)
        env.reset()
        report = client.watch()
        assert (report.resets.count, report.num_resets) == (1, 1)
        assert report.desktops[0].last_reset_s > 0
        assert [(kind.provider, kind.leased) for kind in report.pool] == [("x11", 1)]


def test_a_boot_that_fails_is_told_with_its_reason(short_dir):
    with running_host(short_dir) as client:
        shutil.rmtree(short_dir / "d")
        (short_dir / "d").write_text("no folder can be made here")
        with pytest.raises(EnvError):
            client.acquire("x11", SPEC, holder="a", ttl_s=60)
        failures = client.watch().failures
        assert [failure.provider for failure in failures] == ["x11"]
        assert failures[0].reason
        (short_dir / "d").unlink()
        (short_dir / "d").mkdir()


def test_processes_and_folders_that_no_desktop_accounts_for_are_counted_as_leaks(short_dir):
    with running_host(short_dir) as client:
        client.create("x11", SPEC)
        stray = short_dir / "d" / "dffffff-1"
        stray.mkdir()
        idle = "import sys, time; time.sleep(1000)"
        process = subprocess.Popen([sys.executable, "-c", idle, str(stray / "disk.qcow2")])
        try:
            wait_for(
                "both are counted",
                lambda: (
                    {(leak.kind, leak.name.partition(":")[0]) for leak in client.watch().leaks}
                    == {("folder", "dffffff-1"), ("process", "dffffff-1")}
                ),
            )
        finally:
            process.kill()
            process.wait()
        stray.rmdir()
        wait_for("the counter goes back to 0", lambda: client.watch().leaks == [])
