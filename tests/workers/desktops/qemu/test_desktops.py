"""Real virtual machines: clones, resets, task templates, deaths. One template serves the whole module.

Needs QEMU and the image that `make guest-image` builds; without them every test says so and is skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from testing.desk_host_process import running_host, start_host, stop_host
from testing.watch_installation import wait_for
from tests.workers.conftest import ROOT
from training.contracts.types import Action
from workers.desktops.contract import DesktopSpec, EnvError, ErrorKind
from workers.desktops.host.client import DeskHostClient, LeaseKeeper
from workers.desktops.host.messages import Phase
from workers.desktops.leased_desktop import DesktopEnv
from workers.desktops.qemu.monitor_client import QmpClient
from workers.desktops.screen_settling import SettleLimits

IMAGES = Path(os.environ.get("DESKHAND_IMAGES_DIR") or ROOT / "var" / "images")
TEMPLATES = ROOT / "var" / "test-templates"
"""Kept between runs: a template is checked before it is used, and made again when it does not fit."""
SPEC = DesktopSpec(width=512, height=384, memory_mb=1024)
missing = [name for name in ("qemu-system-x86_64", "qemu-img") if shutil.which(name) is None]
missing += [] if (IMAGES / "debian-desk" / "image.json").exists() else [f"a guest image in {IMAGES}"]
pytestmark = [
    pytest.mark.vm,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(
        bool(missing),
        reason=f"VIRTUAL MACHINES ARE NOT TESTED: no {' and no '.join(missing)}; make guest-image",
    ),
]
OPTIONS = ("--images", str(IMAGES), "--templates", str(TEMPLATES), "--warm-limit", "0")


@pytest.fixture(scope="module")
def vm_client() -> Iterator[DeskHostClient]:
    """A desk host with machines for all tests here."""
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="dh-", dir="/tmp"))
    with running_host(folder, *OPTIONS) as client:
        yield client
    assert list((folder / "d").iterdir()) == []
    assert not qemus(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def machine(vm_client: DeskHostClient) -> Iterator[DesktopEnv]:
    with leased(vm_client) as env:
        yield env


class leased:
    """A leased machine whose lease is renewed."""

    def __init__(self, client: DeskHostClient) -> None:
        self.client = client

    def __enter__(self) -> DesktopEnv:
        lease = self.client.acquire("qemu", SPEC, holder="test", ttl_s=60)
        self.keeper = LeaseKeeper(self.client, lease)
        self.env = DesktopEnv(self.client, lease)
        return self.env

    def __exit__(self, *_exc: object) -> None:
        self.keeper.close()
        desktop_id = self.env.lease.desktop.desktop_id
        self.env.close()
        self.client.destroy(desktop_id)


def qemus(folder: Path) -> list[int]:
    """Machines that run in a folder."""
    return [
        process.pid
        for process in psutil.process_iter(["cmdline", "status"])
        if process.info["status"] != psutil.STATUS_ZOMBIE
        and "qemu-system" in " ".join((process.info["cmdline"] or [])[:1])
        and str(folder) in " ".join(process.info["cmdline"] or [])
    ]


def row_of(client: DeskHostClient, env: DesktopEnv):
    return next(row for row in client.list() if row.info.desktop_id == env.lease.desktop.desktop_id)


def ask(env: DesktopEnv, command: str) -> str:
    return env.agent.execute(command, shell=True).output.strip()


def refuses(address: str) -> bool:
    host, port = address.split(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except OSError:
        return True
    return False


def test_health_names_the_images_and_how_machines_run(vm_client, machine):
    health = next(found for found in vm_client.health().providers if found.provider == "qemu")
    assert health.usable
    assert "debian-desk" in health.mode
    assert "tcg (" in health.mode or "kvm (" in health.mode


def test_clones_wake_up_with_identical_pictures_and_their_own_clock_and_randomness(vm_client, machine):
    with leased(vm_client) as other:
        first, second = machine.observe(), other.observe()
        assert (first.width, first.height) == (512, 384)
        assert first.raw_digest == second.raw_digest
        read = "head -c 16 /dev/urandom | od -An -tx1"
        assert ask(machine, read) != ask(other, read)
        for env in (machine, other):
            assert abs(float(ask(env, "date +%s")) - time.time()) < 20


def test_keys_pointer_and_files_reach_the_guest_and_a_reset_leaves_nothing_of_them(machine):
    clean = machine.observe()
    machine.agent.put("~/note.txt", b"")
    machine.agent.launch(["mousepad", f"{machine.home}/note.txt"])
    machine.wait_for_window("Mousepad", timeout_s=400)
    typed = "".join(chr(code) for code in range(0x20, 0x7F))
    machine.act(Action(kind="type", text=typed))
    machine.act(Action(kind="key", keys=("ctrl", "s")))
    machine.observe()
    assert machine.agent.get("~/note.txt").decode().removesuffix("\n") == typed
    pid = machine.lease.desktop.generation
    report = machine.reset()
    assert not report.rebuilt
    assert machine.lease.desktop.generation == pid + 1
    assert machine.agent.get("~/note.txt") is None
    assert machine.observe().raw_digest == clean.raw_digest
    assert [w.title for w in machine.windows() if "Mousepad" in w.title] == []


def test_the_pointer_goes_to_the_pixel_that_is_named(machine):
    for x, y in ((0, 0), (511, 383), (1, 382), (255, 191), (256, 192), (333, 222), (510, 1)):
        machine.act(Action(kind="move", x=x, y=y))
        machine.observe()
        where = dict(part.split(":") for part in ask(machine, "xdotool getmouselocation").split())
        assert (int(where["x"]), int(where["y"])) == (x, y)


def state_of(qmp: str) -> str:
    client = QmpClient(qmp)
    try:
        return client.execute("query-status")["status"]
    finally:
        client.close()


def test_a_machine_stands_still_while_nobody_has_it_and_wakes_up_on_time(vm_client):
    free = vm_client.create("qemu", SPEC)
    assert state_of(free.endpoints.qmp) == "paused"
    time.sleep(2)
    with leased(vm_client) as env:
        assert env.lease.desktop.desktop_id == free.desktop_id
        assert state_of(free.endpoints.qmp) == "running"
        assert abs(float(ask(env, "date +%s.%N")) - time.time()) < 1.5


CPU_GROUPS = Path("/sys/fs/cgroup/cpu")


class starved:
    """While entered, the machine's processor gets a twentieth of one; QEMU itself is as quick as ever."""

    def __init__(self, env: DesktopEnv) -> None:
        self.group = CPU_GROUPS / f"deskhand-test-{os.getpid()}"
        self.threads = [row["thread-id"] for row in env.console._client.execute("query-cpus-fast")]
        membership = Path(f"/proc/{self.threads[0]}/cgroup").read_text().splitlines()
        before = next(line.rpartition(":")[2] for line in membership if ":cpu:" in line)
        self.before = CPU_GROUPS / before.lstrip("/")

    def __enter__(self) -> None:
        self.group.mkdir()
        (self.group / "cpu.cfs_period_us").write_text("100000")
        (self.group / "cpu.cfs_quota_us").write_text("5000")
        self._put(self.group)

    def __exit__(self, *_exc: object) -> None:
        self._put(self.before)
        self.group.rmdir()

    def _put(self, group: Path) -> None:
        for thread in self.threads:
            (group / "tasks").write_text(str(thread))


@pytest.mark.skipif(
    not os.access(CPU_GROUPS / "cpu.cfs_quota_us", os.F_OK) and not os.access(CPU_GROUPS / "tasks", os.W_OK),
    reason="a machine is starved by a control group (v1), which this user cannot make",
)
def test_a_starved_guest_loses_no_key(machine):
    """Without waiting for the guest a third of such text arrives."""
    text = "The quick brown fox jumps over 13 lazy dogs, and 4 more. " * 4
    machine.agent.launch(["xterm", "-e", "stty -icanon -echo; cat > typed"])
    machine.wait_for_window("xterm", timeout_s=60)
    wait_for("the terminal to read", lambda: ask(machine, "ls typed") == "typed")
    machine.observe(SettleLimits(quiet_s=0.5, limit_s=10))
    with starved(machine):
        machine.act(Action(kind="type", text=text))
    wait_for(lambda: ask(machine, "cat typed"), lambda: ask(machine, "cat typed") == text.strip())


def test_the_guest_reaches_nothing(machine):
    """Neither the host's loopback, by which its agent is reached, nor a name server."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        probe = f"timeout 10 bash -c 'echo > /dev/tcp/10.0.2.2/{port}' && echo reached"
        assert ask(machine, probe) == ""
        server.settimeout(0.1)
        with pytest.raises(TimeoutError):
            server.accept()
    assert ask(machine, "timeout 10 bash -c 'echo > /dev/tcp/10.0.2.3/53' && echo reached") == ""


def test_a_setup_is_run_once_and_every_member_of_a_group_starts_from_the_same_picture(vm_client):
    key = f"test-{os.getpid()}-{time.time()}"
    runs: list[str] = []
    frames: dict[str, str] = {}
    problems: list[BaseException] = []

    def member(name: str) -> None:
        client = DeskHostClient(vm_client.socket_path)
        try:
            with leased(client) as env:

                def setup() -> None:
                    runs.append(name)
                    env.agent.put("~/prepared.txt", name.encode())
                    env.agent.launch(["galculator"])
                    env.wait_for_window("galculator", timeout_s=400)

                env.prepare(key, setup)
                frames[name] = env.observe().raw_digest
                assert env.agent.get("~/prepared.txt") == runs[0].encode()
                env.agent.put("~/prepared.txt", b"changed by one member")
        except BaseException as exc:  # noqa: BLE001
            problems.append(exc)
        finally:
            client.close()

    threads = [threading.Thread(target=member, args=(f"m{number}",)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=900)
    assert problems == []
    assert len(runs) == 1, "the setup ran once for all three"
    assert len(frames) == 3
    assert len(set(frames.values())) == 1, "all three start from identical bits"
    with leased(vm_client) as late:
        assert late.prepare(key, lambda: runs.append("late"))
        assert late.observe().raw_digest in frames.values()
        assert late.agent.get("~/prepared.txt") == runs[0].encode()
    assert len(runs) == 1


def test_a_setup_that_fails_gives_its_turn_to_the_next(vm_client, machine):
    key = f"fails-{os.getpid()}-{time.time()}"

    def broken() -> None:
        raise ValueError("the task is wrong")

    with pytest.raises(ValueError, match="the task is wrong"):
        machine.prepare(key, broken)
    machine.reset()
    with leased(vm_client) as other:
        assert not other.prepare(key, lambda: other.agent.put("~/done", b"1"))
        assert other.agent.get("~/done") == b"1"
    with pytest.raises(EnvError, match="not being prepared") as caught:
        vm_client.keep(machine.lease.desktop.desktop_id, machine.lease.lease_id)
    assert caught.value.kind is ErrorKind.TASK


def test_a_killed_machine_is_noticed_explained_and_replaced(vm_client, machine):
    machine.observe()
    row = row_of(vm_client, machine)
    os.kill(row.pid, signal.SIGKILL)
    wait_for("the notice", lambda: row_of(vm_client, machine).phase is Phase.DEAD, poll_s=0.05)
    with pytest.raises(EnvError, match="QEMU ended with code -9") as caught:
        machine.observe()
    assert caught.value.kind is ErrorKind.INFRA
    assert machine.reset().rebuilt
    assert machine.observe().width == 512


def test_a_destroyed_machine_leaves_no_process_port_folder_or_control_group(vm_client):
    with leased(vm_client) as env:
        env.observe()
        endpoints, pid = env.lease.desktop.endpoints, row_of(vm_client, env).pid
        assert not refuses(endpoints.agent)
        groups = [line.rpartition(":")[2] for line in Path(f"/proc/{pid}/cgroup").read_text().split()]
    folder = Path(endpoints.qmp).parent
    assert not psutil.pid_exists(pid)
    assert refuses(endpoints.agent)
    assert not folder.exists()
    for group in groups:
        if "deskhand" in group:
            assert not list(Path("/sys/fs/cgroup").glob(f"*{group}"))


def test_a_killed_host_takes_its_machines_along_and_the_next_host_removes_the_rest(short_dir):
    process, client = start_host(short_dir, *OPTIONS)
    try:
        lease = client.acquire("qemu", SPEC, holder="test", ttl_s=60)
        endpoints = lease.desktop.endpoints
        assert qemus(short_dir)
    finally:
        process.kill()
        process.wait()
    wait_for("the end of the host's machines", lambda: not qemus(short_dir), poll_s=0.05)
    assert refuses(endpoints.agent)
    assert list((short_dir / "d").iterdir())
    process, client = start_host(short_dir, *OPTIONS)
    try:
        assert client.list() == []
        assert list((short_dir / "d").iterdir()) == []
        assert list((short_dir / "pids").iterdir()) == []
    finally:
        client.close()
        assert stop_host(process) == 0


def test_a_damaged_template_is_made_again_not_cloned(short_dir):
    """The memory file is the one whose loss QEMU would not notice."""
    templates = short_dir / "templates"
    shutil.copytree(TEMPLATES, templates, ignore=shutil.ignore_patterns("failures", "ram"), symlinks=True)
    options = ("--images", str(IMAGES), "--templates", str(templates), "--warm-limit", "0")
    for meta in templates.glob("*/meta.json"):
        if json.loads(meta.read_text())["parent"]:
            shutil.rmtree(meta.parent)
    with running_host(short_dir, *options) as client, leased(client) as env:
        assert env.observe().width == 512
    assert "is made again" in (short_dir / "host.log").read_text()
    assert list(templates.glob("*/ram")), "those of earlier images stay as they are"
