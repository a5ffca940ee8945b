"""Latency and CPU of one proxy's updates, for one viewer and for many."""

from __future__ import annotations

import asyncio
import hashlib
import time

import psutil

from benchmarks.report import percentile
from benchmarks.vnc.rfb_client import RfbViewer
from benchmarks.vnc.stage import BOX, LIMIT_S, Painter, Peer, Stage

VIEWERS = 16
PAUSE_S = 0.03
IDLE_S = 4.0


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
