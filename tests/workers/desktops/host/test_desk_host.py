"""The desk host: leases, deaths, restarts. Real processes throughout."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import httpx
import psutil
import pytest

from testing import watch_installation
from testing.desk_host_process import HostFailed, running_host, start_host, stop_host
from tests.workers.conftest import ROOT
from workers.desktops.contract import DesktopSpec, EnvError, ErrorKind
from workers.desktops.host.client import DeskHostClient, LeaseKeeper
from workers.desktops.host.messages import PHASE_TRANSITIONS, Phase
from workers.desktops.leased_desktop import DesktopEnv
from workers.desktops.x11.sandbox import sandbox_problem
from workers.processes.pid_records import PidRecords
from workers.processes.process_group import start_ticks

pytestmark = pytest.mark.desktop
SPEC = DesktopSpec()
wait_for = partial(watch_installation.wait_for, poll_s=0.02)


def family(pid: int) -> list[psutil.Process]:
    return [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]


def are_gone(processes: list[psutil.Process]) -> bool:
    return all(start_ticks(process.pid) is None for process in processes)


def test_a_lease_brings_a_running_desktop_and_release_cleans_it_for_the_next_holder(short_dir):
    with running_host(short_dir) as client:
        first = client.acquire("x11", SPEC, holder="ann", ttl_s=30)
        env = DesktopEnv(client, first)
        env.agent.put("~/private.txt", b"ann's")
        assert client.list()[0].holder == "ann"
        env.close()
        second = client.acquire("x11", SPEC, holder="bob", ttl_s=30)
        assert second.desktop.desktop_id == first.desktop.desktop_id, "a desktop is used again, not made anew"
        assert DesktopEnv(client, second).agent.get("~/private.txt") is None


def test_two_holders_never_share_a_desktop_and_a_full_host_says_so(short_dir):
    with running_host(short_dir, "--max-desktops", "2") as client:
        ids = {client.acquire("x11", SPEC, holder=name, ttl_s=30).desktop.desktop_id for name in ("a", "b")}
        assert len(ids) == 2
        with pytest.raises(EnvError, match="all 2 desktops of this host exist") as caught:
            client.acquire("x11", SPEC, holder="c", ttl_s=30)
        assert caught.value.kind is ErrorKind.QUOTA
        assert not caught.value.permanent


def test_a_full_host_gives_up_a_free_desktop_of_another_kind(short_dir):
    with running_host(short_dir, "--max-desktops", "1") as client:
        client.create("x11", DesktopSpec(width=640, height=480))
        lease = client.acquire("x11", SPEC, holder="a", ttl_s=30)
        assert [row.info.desktop_id for row in client.list()] == [lease.desktop.desktop_id]


def test_a_lease_that_nobody_renews_expires_and_its_desktop_is_cleaned(short_dir):
    with running_host(short_dir) as client:
        lease = client.acquire("x11", SPEC, holder="gone", ttl_s=3)
        DesktopEnv(client, lease).agent.put("~/left.txt", b"x")
        wait_for("the desktop is free again", lambda: client.list()[0].phase is Phase.READY)
        with pytest.raises(EnvError, match="lease has expired") as caught:
            client.renew(lease.lease_id)
        assert caught.value.kind is ErrorKind.QUOTA
        with pytest.raises(EnvError, match="lease has expired"):
            client.reset(lease.desktop.desktop_id, lease.lease_id)
        again = client.acquire("x11", SPEC, holder="next", ttl_s=30)
        assert DesktopEnv(client, again).agent.get("~/left.txt") is None


def test_a_keeper_holds_a_short_lease_for_as_long_as_it_lives(short_dir):
    with running_host(short_dir) as client:
        lease = client.acquire("x11", SPEC, holder="kept", ttl_s=2.0)
        with LeaseKeeper(client, lease) as keeper:
            until = time.monotonic() + 5.0
            while time.monotonic() < until:
                assert client.list()[0].lease_id == lease.lease_id
                time.sleep(0.1)
            assert not keeper.lost.is_set()
            client.release(lease.lease_id)
            assert keeper.lost.wait(60), "the keeper tells that the lease is lost"


def test_a_desktop_that_dies_is_noticed_explained_and_rebuilt_by_the_next_reset(desk_client, desktop):
    desktop.observe()
    row = next(r for r in desk_client.list() if r.info.desktop_id == desktop.lease.desktop.desktop_id)
    os.kill(row.pid, signal.SIGKILL)

    def dead_row():
        rows = [r for r in desk_client.list() if r.info.desktop_id == row.info.desktop_id]
        return rows[0] if rows[0].phase is Phase.DEAD else None

    dead = wait_for("the host notices", dead_row)
    assert "died: it ended with code -9" in dead.reason
    with pytest.raises(EnvError, match="died: it ended with code -9") as caught:
        desktop.observe()
    assert caught.value.kind is ErrorKind.INFRA
    report = desktop.reset()
    assert report.rebuilt
    assert desktop.observe().width == 512
    after = next(r for r in desk_client.list() if r.info.desktop_id == row.info.desktop_id)
    assert (after.phase, after.rebuilds, after.failures) == (Phase.LEASED, row.rebuilds + 1, row.failures + 1)


def test_a_desktop_that_eats_memory_is_ended_and_says_so(short_dir):
    with running_host(short_dir) as client:
        lease = client.acquire("x11", DesktopSpec(memory_mb=160), holder="greedy", ttl_s=60)
        with DesktopEnv(client, lease) as env:
            script = "import time; b = bytearray(400 << 20); time.sleep(100)"
            env.agent.launch(["/usr/bin/python3", "-c", script])
            ended = wait_for("the desktop is ended", lambda: client.why_dead(lease.desktop.desktop_id))
            assert "MiB of memory" in ended or "code" in ended  # the host's own check, or the kernel's group
            assert env.reset().rebuilt


def test_a_frozen_x_server_becomes_an_error_and_its_desktop_is_rebuilt(desk_client, desktop):
    desktop.observe()
    row = next(r for r in desk_client.list() if r.info.desktop_id == desktop.lease.desktop.desktop_id)
    server = next(p for p in family(row.pid) if p.name() == "Xvnc")
    server.suspend()
    with pytest.raises(EnvError, match="display is gone"), desktop.console.display.guarded(0.3):
        desktop.console.display.pixels()
    report = desktop.reset()
    assert report.rebuilt
    assert "took longer than" in report.reason
    assert desktop.observe().width == 512


def test_a_killed_x_server_ends_its_desktop_and_a_reset_brings_it_back(desk_client, desktop):
    row = next(r for r in desk_client.list() if r.info.desktop_id == desktop.lease.desktop.desktop_id)
    next(p for p in family(row.pid) if p.name() == "Xvnc").kill()

    def observe_until_it_fails() -> None:
        for _ in range(200):
            desktop.observe()

    with pytest.raises(EnvError, match="display is gone"):
        observe_until_it_fails()
    assert desktop.reset().rebuilt
    assert desktop.observe().height == 384


def test_sigterm_ends_every_desktop_and_leaves_no_process_socket_or_folder(short_dir):
    process, client = start_host(short_dir)
    client.acquire("x11", SPEC, holder="a", ttl_s=30)
    client.create("x11", SPEC)
    members = family(process.pid)
    assert len(members) > 10
    assert stop_host(process) == 0
    assert are_gone(members)
    assert sorted(p.name for p in short_dir.iterdir()) == ["d", "host.log", "pids"]
    assert [*(short_dir / "d").iterdir(), *(short_dir / "pids").iterdir()] == []
    assert not list(Path("/sys/fs/cgroup").glob(f"*/deskhand-{process.pid}-*"))
    assert "Traceback" not in (short_dir / "host.log").read_text()


def test_sigkill_of_the_host_ends_every_desktop_and_the_next_host_sweeps_the_rest(short_dir):
    process, client = start_host(short_dir)
    client.acquire("x11", SPEC, holder="a", ttl_s=30)
    members = family(process.pid)
    process.kill()
    process.wait()
    wait_for("all desktops ended with their host", lambda: are_gone(members))
    assert len(list((short_dir / "pids").iterdir())) == 1, "the record survives for the sweep"
    with running_host(short_dir) as client:
        assert client.list() == []
        assert list((short_dir / "pids").iterdir()) == []
        assert list((short_dir / "d").iterdir()) == []
    assert not list(Path("/sys/fs/cgroup").glob(f"*/deskhand-{process.pid}-*"))


def test_the_sweep_ends_only_what_a_record_proves_to_be_ours(short_dir):
    ours = subprocess.Popen(["sleep", "100"], start_new_session=True)
    stranger = subprocess.Popen(["sleep", "100"], start_new_session=True)
    try:
        records = PidRecords(short_dir / "pids")
        records.add("ours", ours.pid, [])
        records.add("recycled", stranger.pid, [])
        path = short_dir / "pids" / "recycled.json"
        start = start_ticks(stranger.pid)
        path.write_text(path.read_text().replace(f'"start": {start}', f'"start": {start - 1}'))
        (short_dir / "pids" / "torn.json").write_text('{"pid": ')
        assert PidRecords(short_dir / "pids").sweep() == 1
        assert ours.wait(60) == -signal.SIGKILL
        assert stranger.poll() is None
        assert list((short_dir / "pids").glob("*.json")) == []
    finally:
        stranger.kill()
        stranger.wait()


def test_a_second_host_on_the_same_socket_is_refused(short_dir):
    with running_host(short_dir) as client:
        other = short_dir / "other"
        command = [
            sys.executable,
            "-m",
            "workers.desktops.host",
            "--state-dir",
            str(other),
            "--socket",
            client.socket_path,
        ]
        second = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
        assert second.returncode == 1
        assert "another desk host already serves" in second.stderr
        assert client.health().desktops == {}, "the first one goes on"


def test_a_host_that_ends_at_its_start_says_why(short_dir):
    with pytest.raises(HostFailed, match="ended at its start with exit code 2") as failed:
        start_host(short_dir, "--max-desktops", "many")
    assert "--max-desktops: invalid int value: 'many'" in str(failed.value)


def test_the_client_says_what_to_do_without_a_host_and_finds_one_that_came_back(short_dir):
    client = DeskHostClient(short_dir / "s")
    with pytest.raises(EnvError, match="is `python -m workers.desktops.host` up"):
        client.health()
    for _ in range(2):
        process, other = start_host(short_dir)
        wait_for("the client reaches the new host", lambda: can_ask(client))
        other.close()
        stop_host(process)


def can_ask(client: DeskHostClient) -> bool:
    try:
        return client.health().pid > 0
    except EnvError:
        return False


def test_a_desktop_is_rebuilt_after_the_set_number_of_resets(short_dir):
    with running_host(short_dir, "--rebuild-every", "3") as client:
        with DesktopEnv(client, client.acquire("x11", SPEC, holder="a", ttl_s=30)) as env:
            reports = [env.reset() for _ in range(4)]
        assert [report.rebuilt for report in reports] == [False, False, True, False]
        assert reports[2].reason == "routine rebuild after 3 resets"


def test_the_length_of_the_queue_is_taken(desk_client):
    desk_client.expect("x11", 512, 384, 2)  # raises when the host cannot read it


def test_bad_requests_are_answered_with_the_field_and_do_not_hurt_the_host(desk_client):
    transport = httpx.HTTPTransport(uds=desk_client.socket_path)

    def refusal(call: str, body: str) -> str:
        with httpx.Client(transport=transport, base_url="http://deskhost") as http:
            answer = http.post(f"/{call}", content=body)
        assert answer.status_code == 400
        return answer.json()["error"]["message"]

    assert "spec.width: Input should be" in refusal("create", '{"provider": "x11", "spec": {"width": 9}}')
    assert "there is no 'rm'" in refusal("rm", "{}")
    assert "bad request" in refusal("renew", "not json")
    assert "bad request" in refusal("renew", "[1]")
    assert "lease_id: Missing required argument" in refusal("renew", "{}")
    assert "no 'qemu9'; known: x11" in refusal("create", '{"provider": "qemu9", "spec": {}}')
    endless = '{"provider": "x11", "spec": {}, "holder": "a", "ttl_s": -1}'
    assert "ttl_s must be" in refusal("acquire", endless)
    lease = desk_client.acquire("x11", SPEC, holder="a", ttl_s=30)
    with pytest.raises(EnvError, match="not dffffff"):
        desk_client.reset("dffffff", lease.lease_id)
    desk_client.release(lease.lease_id)
    assert desk_client.health().max_desktops == 6


def test_a_deep_state_folder_works_although_socket_addresses_are_short(short_dir):
    deep = short_dir / ("x" * 60) / ("y" * 60)
    deep.mkdir(parents=True)
    with running_host(deep) as client:
        lease = client.acquire("x11", SPEC, holder="deep", ttl_s=30)
        assert len(lease.desktop.endpoints.agent) > 130
        with DesktopEnv(client, lease) as env:
            assert env.observe().width == 512
            assert env.agent.execute("echo hi", shell=True).output == "hi\n"
            assert not env.reset().rebuilt
    assert not (deep / "s").exists()


def test_many_threads_lease_reset_and_release_without_ever_sharing(short_dir):
    in_use: set[str] = set()
    guard = threading.Lock()
    problems: list[str] = []

    def work(name: str, client: DeskHostClient) -> None:
        for _ in range(4):
            lease = client.acquire("x11", SPEC, holder=name, ttl_s=60)
            desktop_id = lease.desktop.desktop_id
            with guard:
                if desktop_id in in_use:
                    problems.append(f"{desktop_id} was leased twice")
                in_use.add(desktop_id)
            env = DesktopEnv(client, lease)
            env.reset()
            env.agent.put("~/mine", name.encode())
            if env.agent.get("~/mine") != name.encode():
                problems.append("another holder wrote here")
            with guard:
                in_use.discard(desktop_id)
            env.close()

    with running_host(short_dir, "--warm-limit", "0") as client:
        threads = [threading.Thread(target=work, args=(f"t{n}", client)) for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=120)
        assert problems == []
        assert len(client.list()) <= 3


def test_every_phase_has_transitions_and_gone_is_final():
    assert set(PHASE_TRANSITIONS) == set(Phase)
    assert PHASE_TRANSITIONS[Phase.GONE] == set()
    assert all(Phase.GONE in after for phase, after in PHASE_TRANSITIONS.items() if phase is not Phase.GONE)


@pytest.fixture
def no_programs(monkeypatch):
    """A function that takes all programs away from this machine."""
    with monkeypatch.context() as changed:
        yield lambda: changed.setattr(shutil, "which", lambda name: None)
    sandbox_problem.cache_clear()  # what was found out holds for that machine


def test_health_names_what_is_missing_and_what_to_do(desk_client, no_programs):
    provider = desk_client.health().providers[0]
    assert provider.usable
    assert len(provider.reasons) == len(provider.remedies)
    from workers.desktops.x11.provider import X11Provider

    no_programs()
    health = X11Provider().probe()
    assert not health.usable
    assert "apt-get install openbox" in health.remedies
    assert "apt-get install tigervnc-standalone-server" in health.remedies
