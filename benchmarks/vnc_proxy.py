"""noVNC's way to a desktop: our proxy (web process and the env worker's relay) against websockify.

    python -m benchmarks.vnc_proxy [--rounds 5] [--changes 120] [--fuzz 100000]

One X11 desktop of 1280 x 720 in a whole private installation. A window on it changes its colour; measured is
the time until the same client, through either proxy, has the update of those pixels, and the CPU that the
proxy's processes used meanwhile (less what they use without a viewer). Rounds alternate. Then: 16 viewers on
the one desktop, a viewer that takes nothing, and random and malformed RFB messages sent by somebody who may
only watch, after which desktop and web process must be as before.

Bars: latency p50 <= 1.5 x websockify's + 2 ms; CPU per update <= 5 x websockify's (ours has one hop more,
the relay that cuts viewers off before a desktop is used again, and an ASGI server); 16 viewers all see
the same last picture; a viewer that takes nothing costs <= 32 MB; fuzzing changes nothing, and every broken
stream is refused.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import psutil
from websockets.exceptions import ConnectionClosed

from benchmarks.report import finish, percentile, print_table
from benchmarks.rfb_client import RfbViewer
from training.config import ExperimentConfig
from training.tasks import first_desk
from training.types import Action, ActionKind, Purpose, Source, Task
from webapp.lib.supervisor.instance import Instance
from webapp.lib.supervisor.ports import free_port

MAX_LATENCY_RATIO, LATENCY_SLACK_MS = 1.5, 2.0
MAX_CPU_RATIO = 5.0
"""websockify copies in one loop and knows no rights; an ASGI server costs 70 microseconds a message."""
MAX_SLOW_MB = 32.0
SCREEN = (1280, 720)
BOX = (40, 40, 320, 240)
"""The window that changes: x, y, width, height; 300 KB of raw pixels."""
VIEWERS = 16
PAUSE_S = 0.03
SLOW_S = 8.0
SLOW_REQUESTS = 60
BURST, BURSTS = 100, 20
BAD_PROTOCOL = 4400
NO_MESSAGES = (1, 7, 8, 42, 99, 200, 248, 249, 252)
LIMIT_S = 120
IDLE_S = 4.0


@dataclass
class Stage:
    """What is measured: a desktop and the two ways to it."""

    deskhand: Instance
    cookie: str
    trajectory_id: int
    vnc_socket: str
    painter: Painter
    web: psutil.Process
    worker: psutil.Process

    @property
    def url(self) -> str:
        return f"{self.deskhand.url.replace('http', 'ws', 1)}/ws/screens/{self.trajectory_id}/"

    async def viewer(self) -> RfbViewer:
        headers = {"Cookie": self.cookie}
        return await RfbViewer.open(self.url, additional_headers=headers, origin=self.deskhand.url)


class Painter:
    """A window on the desktop whose colour changes at a known moment."""

    def __init__(self, display_socket: str) -> None:
        from workers.providers.x11_display import X11Display

        self.display = X11Display(display_socket)
        self.window = self.display.root.create_window(
            *BOX, 0, self.display.screen.root_depth, override_redirect=True, background_pixel=0
        )
        self.window.map()
        self.display.display.sync()
        self.colours = random.Random(3)

    def change(self) -> tuple[int, float]:
        """(new colour, when it was drawn)."""
        colour = self.colours.randrange(1 << 24)
        self.window.change_attributes(background_pixel=colour)
        self.window.clear_area()
        self.display.display.flush()
        return colour, time.perf_counter()

    async def still(self) -> str:
        """Digest of all pixels and of the pointer's place, with the window in its first colour."""
        self.window.change_attributes(background_pixel=0)
        self.window.clear_area()
        self.display.display.sync()
        await asyncio.sleep(1)
        at = self.display.root.query_pointer()
        return hashlib.sha256(self.display.pixels() + f"{at.root_x},{at.root_y}".encode()).hexdigest()


@dataclass
class Peer:
    """One proxy: how to open a viewer, and whose CPU it uses."""

    name: str
    open: Callable[[], Any]
    processes: list[psutil.Process]
    latencies_ms: list[float] = field(default_factory=list)
    cpu_s: float = 0.0
    updates: int = 0

    @property
    def cpu_ms(self) -> float:
        """Per update."""
        return 1000 * self.cpu_s / max(1, self.updates)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--changes", type=int, default=120, help="colour changes in a round")
    parser.add_argument("--fuzz", type=int, default=100_000, help="messages of the fuzzer")
    options = parser.parse_args()
    with Instance(without=["gpu"], slots=1, env_workers=1) as deskhand:
        os.environ.update(deskhand.environment)
        import django

        django.setup()
        stage = prepare(deskhand)
        figures, passed = asyncio.run(measure(stage, options))
    return finish("vnc_proxy", figures, passed=passed)


def prepare(deskhand: Instance) -> Stage:
    """A trajectory that waits on its desktop, and a signed-in viewer."""
    from django.conf import settings
    from django.contrib.auth.models import User
    from django.test import Client

    from workers.deskhost.client import DeskHostClient

    settings.ALLOWED_HOSTS = ["*"]
    browser = Client()
    browser.force_login(User.objects.get(username=deskhand.credentials[0]))
    trajectory_id = start_waiting()
    with DeskHostClient(settings.DESKHOST_SOCKET) as host:
        (row,) = [status for status in host.list() if status.lease_id]
    endpoints = row.info.endpoints
    name = settings.SESSION_COOKIE_NAME
    return Stage(
        deskhand=deskhand,
        cookie=f"{name}={browser.cookies[name].value}",
        trajectory_id=trajectory_id,
        vnc_socket=endpoints.vnc,
        painter=Painter(endpoints.display),
        web=child(deskhand, "uvicorn"),
        worker=child(deskhand, "celery"),
    )


def start_waiting() -> int:
    """A trajectory whose script only waits; returns once its screen is there."""
    from webapp.accounts.models import Team
    from webapp.experiments.models import Experiment, ExperimentStatus, TaskRecord, TaskSet
    from webapp.screens.models import Screen
    from webapp.trajectories.services import GroupRequest, create_group

    task = waiting_task()
    record = TaskRecord.objects.create(
        task_set=TaskSet.objects.create(name="waiting"),
        task_id=task.task_id,
        instruction=task.instruction,
        split=task.split,
        spec=task.model_dump(mode="json"),
    )
    team = Team.objects.order_by("pk")[0]
    config = ExperimentConfig.model_validate({"desktops": {"trajectory_timeout_s": 3600}})
    patient = Experiment.objects.create(
        team=team, name="waiting", status=ExperimentStatus.FINISHED, config=config.model_dump(mode="json")
    )
    request = GroupRequest(task=record, size=1, purpose=Purpose.VERIFICATION, source=Source.ORACLE)
    group = create_group(request=request, team_id=team.pk, experiment=patient)
    deadline = time.monotonic() + LIMIT_S
    while not Screen.objects.filter(trajectory__group=group, trajectory__num_turns__gt=0).exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"no desktop after {LIMIT_S} s")
        time.sleep(0.1)
    return group.trajectories.get().pk


def waiting_task() -> Task:
    """First desk's editor task on a large screen; its script waits in turns of a minute."""
    task = next(task for task in first_desk.generate() if task.family == "note")
    wait = Action(kind=ActionKind.WAIT, seconds=60).model_dump(mode="json")
    changes = {"oracle": {**task.oracle, "actions": [wait] * 60}, "max_turns": 60, "screen": SCREEN}
    return task.model_copy(update=changes)


def child(deskhand: Instance, word: str) -> psutil.Process:
    """The installation's own process whose command line has this word."""
    assert deskhand.process is not None
    family = psutil.Process(deskhand.process.pid).children(recursive=True)
    return next(process for process in family if any(word in part for part in process.cmdline()))


# --- what is measured ----------------------------------------------------------------------------------


async def measure(stage: Stage, options: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    async with websockify(stage.vnc_socket) as (url, process):
        ours = Peer("deskhand", stage.viewer, [stage.web, stage.worker])
        theirs = Peer("websockify", lambda: RfbViewer.open(url, subprotocols=["binary"]), [process])
        for _ in range(options.rounds):
            for peer in (ours, theirs):
                await one_round(stage.painter, peer, options.changes)
        crowds = {peer.name: await crowd(stage, peer, options.changes // 2) for peer in (ours, theirs)}
    slow_mb = await slow_viewer(stage)
    fuzzed = await fuzz(stage, options.fuzz)
    return judge(ours, theirs, crowds, slow_mb, fuzzed)


@asynccontextmanager
async def websockify(vnc_socket: str) -> AsyncIterator[tuple[str, psutil.Process]]:
    """The peer: (url, process); it forks one more process per viewer."""
    port = free_port()
    command = [sys.executable, "-m", "websockify", f"--unix-target={vnc_socket}", f"127.0.0.1:{port}"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + LIMIT_S
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("websockify did not start")
            await asyncio.sleep(0.1)
        yield f"ws://127.0.0.1:{port}/", psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(30)


async def one_round(painter: Painter, peer: Peer, num_changes: int) -> None:
    """Latency of each change, and the CPU of all together."""
    idle_cpu_s = await idle_cpu(peer.processes)
    viewer = await peer.open()
    await viewer.ask(incremental=False)
    await viewer.update()
    before, started = family_cpu_s(peer.processes), time.perf_counter()
    for _ in range(num_changes):
        await viewer.ask(incremental=True)
        await asyncio.sleep(PAUSE_S)
        colour, drawn_at = painter.change()
        await until_seen(viewer, colour)
        peer.latencies_ms.append(1000 * (time.perf_counter() - drawn_at))
        peer.updates += 1
    took_s = time.perf_counter() - started
    used_s = family_cpu_s(peer.processes) - before - idle_cpu_s * took_s
    peer.cpu_s += max(0.0, used_s)
    await viewer.close()


async def until_seen(viewer: RfbViewer, colour: int) -> None:
    """Read updates until both corners of the window have this colour."""
    x, y, width, height = BOX
    async with asyncio.timeout(LIMIT_S):
        while True:
            await viewer.update()
            if {viewer.colour_at(x, y), viewer.colour_at(x + width - 1, y + height - 1)} == {colour}:
                return
            await viewer.ask(incremental=True)


async def idle_cpu(processes: list[psutil.Process]) -> float:
    """CPU seconds per second without a viewer."""
    before = family_cpu_s(processes)
    await asyncio.sleep(IDLE_S)
    return (family_cpu_s(processes) - before) / IDLE_S


def family_cpu_s(processes: list[psutil.Process]) -> float:
    """CPU seconds of the processes and of all that they started and that still lives or was waited for."""
    total = 0.0
    for process in processes:
        for member in [process, *process.children(recursive=True)]:
            try:
                times = member.cpu_times()
            except psutil.NoSuchProcess:
                continue
            total += times.user + times.system
            total += times.children_user + times.children_system if member is process else 0.0
    return total


async def crowd(stage: Stage, peer: Peer, num_changes: int) -> dict[str, float]:
    """Many viewers on one desktop: how late the last of them is."""
    viewers = [await peer.open() for _ in range(VIEWERS)]
    memory = memory_mb(peer.processes)
    for viewer in viewers:
        await viewer.ask(incremental=False)
        await viewer.update()
    lasts = []
    for _ in range(num_changes):
        for viewer in viewers:
            await viewer.ask(incremental=True)
        await asyncio.sleep(PAUSE_S)
        colour, drawn_at = stage.painter.change()
        await asyncio.gather(*(until_seen(viewer, colour) for viewer in viewers))
        lasts.append(1000 * (time.perf_counter() - drawn_at))
    pictures = {hashlib.sha256(viewer.picture).hexdigest() for viewer in viewers}
    result = {
        "last_p50_ms": round(percentile(lasts, 0.5), 1),
        "last_p95_ms": round(percentile(lasts, 0.95), 1),
        "memory_mb": round(memory_mb(peer.processes) - memory, 1),
        "pictures": len(pictures),
    }
    for viewer in viewers:
        await viewer.close()
    return result


def memory_mb(processes: list[psutil.Process]) -> float:
    """Resident, the processes alone."""
    return sum(process.memory_info().rss for process in processes) / (1 << 20)


async def slow_viewer(stage: Stage) -> float:
    """How much the proxy grows for a viewer that asks for everything and takes nothing, MB."""
    reader, writer = await raw_websocket(stage)
    before = memory_mb([stage.web, stage.worker])
    request = bytes([3, 0, 0, 0, 0, 0]) + SCREEN[0].to_bytes(2, "big") + SCREEN[1].to_bytes(2, "big")
    largest = before
    for _ in range(SLOW_REQUESTS):
        writer.write(masked(request))
        await asyncio.sleep(SLOW_S / SLOW_REQUESTS)
        largest = max(largest, memory_mb([stage.web, stage.worker]))
    waiting = await asyncio.wait_for(reader.read(1 << 16), LIMIT_S)
    assert len(waiting) > 1000, "the proxy sent nothing: there was nothing to hold back"
    writer.transport.abort()
    return round(largest - before, 1)


async def raw_websocket(stage: Stage) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A WebSocket without a library, past the RFB handshake: nothing reads it but who calls."""
    host, _, port = stage.deskhand.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 12)
    lines = [
        f"GET /ws/screens/{stage.trajectory_id}/ HTTP/1.1",
        f"Host: {host}:{port}",
        f"Origin: {stage.deskhand.url}",
        f"Cookie: {stage.cookie}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    ]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
    status = await reader.readline()
    assert b" 101 " in status, status
    while (await reader.readline()).strip():
        pass
    writer.write(masked(b"RFB 003.008\n\x01\x01"))
    await asyncio.sleep(1)
    return reader, writer


def masked(payload: bytes) -> bytes:
    """A short binary WebSocket message of a client, with a mask of zeros."""
    assert len(payload) < 126
    return bytes([0x82, 0x80 | len(payload)]) + bytes(4) + payload


async def fuzz(stage: Stage, num_messages: int) -> dict[str, Any]:
    """Input, nonsense and broken messages from somebody who only watches; then look at everything.

    Each connection ends with bytes that are no message, so that the proxy closes it after having read all.
    """
    dice = random.Random(11)
    before, web_pid = await stage.painter.still(), stage.web.pid
    sent = num_refused = connections = 0
    while sent < num_messages:
        viewer = await stage.viewer()
        connections += 1
        for _ in range(BURSTS):
            await viewer.socket.send(b"".join(fuzzed_message(dice) for _ in range(BURST)))
            sent += BURST
        await viewer.socket.send(bytes([dice.choice(NO_MESSAGES)]) + dice.randbytes(40))
        num_refused += await close_code(viewer) == BAD_PROTOCOL
    after = await stage.painter.still()
    last = await stage.viewer()
    colour, _ = stage.painter.change()
    await last.ask(incremental=False)
    await until_seen(last, colour)
    await last.close()
    return {
        "messages": sent,
        "connections": connections,
        "refused": num_refused,
        "desktop_unchanged": before == after,
        "web_alive": stage.web.is_running() and stage.web.pid == web_pid,
    }


async def close_code(viewer: RfbViewer) -> int:
    """Take everything until the proxy closes the connection."""
    try:
        async with asyncio.timeout(LIMIT_S):
            while True:
                await viewer.socket.recv()
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd else 0


def fuzzed_message(dice: random.Random) -> bytes:
    """A whole message of some kind with random content."""
    lengths = {3: 10, 4: 8, 5: 6, 150: 10, 250: 4, 255: 12}
    kind = dice.choice((3, 4, 4, 5, 5, 5, 6, 2, 150, 250, 251, 255))
    if kind == 2:
        number = dice.randrange(8)
        return bytes([2, 0, 0, number]) + dice.randbytes(4 * number)
    if kind == 6:
        return bytes([6, 0, 0, 0, 0, 0, 0, 9]) + dice.randbytes(9)
    if kind == 251:
        return bytes([251, 0, 2, 0, 2, 0, 1, 0]) + dice.randbytes(16)
    if kind == 255:
        return bytes([255, 0]) + dice.randbytes(10)
    return bytes([kind]) + dice.randbytes(lengths[kind] - 1)


def judge(
    ours: Peer, theirs: Peer, crowds: dict[str, dict[str, float]], slow_mb: float, fuzzed: dict[str, Any]
) -> tuple[dict[str, Any], bool]:
    """Print the table; (figures, bar met)."""
    rows = []
    figures: dict[str, Any] = {}
    for peer in (ours, theirs):
        figures[peer.name] = {
            "updates": peer.updates,
            "p50_ms": round(percentile(peer.latencies_ms, 0.5), 2),
            "p95_ms": round(percentile(peer.latencies_ms, 0.95), 2),
            "cpu_ms_per_update": round(peer.cpu_ms, 2),
            **{f"viewers_16_{name}": value for name, value in crowds[peer.name].items()},
        }
        rows.append((peer.name, *figures[peer.name].values()))
    print_table(("proxy", *figures[ours.name]), rows)
    mine, other = figures[ours.name], figures[theirs.name]
    figures |= {
        "latency_ratio": round(mine["p50_ms"] / other["p50_ms"], 2),
        "cpu_ratio": round(mine["cpu_ms_per_update"] / max(0.01, other["cpu_ms_per_update"]), 2),
        "slow_viewer_mb": slow_mb,
        "fuzz": fuzzed,
    }
    names = ("latency_ratio", "cpu_ratio", "slow_viewer_mb", "fuzz_messages", "unchanged", "alive")
    values = (*(figures[name] for name in names[:3]), fuzzed["messages"])
    print_table(names, [(*values, fuzzed["desktop_unchanged"], fuzzed["web_alive"])])
    passed = (
        mine["p50_ms"] <= MAX_LATENCY_RATIO * other["p50_ms"] + LATENCY_SLACK_MS
        and figures["cpu_ratio"] <= MAX_CPU_RATIO
        and mine["viewers_16_pictures"] == 1
        and slow_mb <= MAX_SLOW_MB
        and fuzzed["desktop_unchanged"]
        and fuzzed["refused"] == fuzzed["connections"]
        and fuzzed["web_alive"]
    )
    return figures, passed


if __name__ == "__main__":
    sys.exit(main())
