"""What the host reports: its health, and all that the fleet page shows."""

import asyncio
import contextlib
import os
import time
from pathlib import Path

import psutil

from workers.desktops.contract import Health
from workers.desktops.host.desktop_snapshots import use as snapshot_use
from workers.desktops.host.host import DeskHost
from workers.desktops.host.messages import HostHealth, HostReport, Machine, Phase, ResetTimes

RESET_WINDOW_S = 60.0
PROBE_S = 30.0
MAX_WAIT_S = 30.0


MIB = 1 << 20


def measure_machine(folder: Path) -> Machine:
    """Cores, CPU since the last call, memory, and the file system that holds `folder`."""
    memory, disk = psutil.virtual_memory(), psutil.disk_usage(str(folder))
    return Machine(
        cores=os.cpu_count() or 1,
        cpu_percent=psutil.cpu_percent(),
        load=round(os.getloadavg()[0], 2),
        memory_mb=round(memory.total / MIB),
        memory_used_mb=round((memory.total - memory.available) / MIB),
        disk_mb=round(disk.total / MIB),
        disk_free_mb=round(disk.free / MIB),
    )


def provider_health(host: DeskHost) -> list[Health]:
    """What the providers said, at most `PROBE_S` ago: some probes start programs."""
    now = time.monotonic()
    if host.probes is None or now - host.probes[0] > PROBE_S:
        host.probes = (now, [provider.probe() for provider in host.providers.values()])
    return host.probes[1]


def health(host: DeskHost, probes: list[Health] | None = None) -> HostHealth:
    """The host as a whole; every provider is probed anew unless `probes` are given."""
    counts: dict[Phase, int] = {}
    for record in host.desktops.values():
        counts[record.phase] = counts.get(record.phase, 0) + 1
    return HostHealth(
        pid=os.getpid(),
        uptime_s=round(time.monotonic() - host.started_at, 1),
        desktops=counts,
        max_desktops=host.max_desktops,
        swept=host.swept,
        providers=[provider.probe() for provider in host.providers.values()] if probes is None else probes,
        is_draining=host.is_draining,
    )


async def watch(host: DeskHost, after: int, wait_s: float) -> HostReport:
    """The report once something changed after version `after`, or after `wait_s` without a change."""
    if host.version <= after:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(max(0.0, wait_s), MAX_WAIT_S)):
                await host.changed.wait()
    return HostReport(
        version=host.version,
        health=health(host, provider_health(host)),
        machine=measure_machine(host.state_dir),
        desktops=[host.status(record, measured=True) for record in host.desktops.values()],
        resets=reset_times(host),
        num_resets=host.num_resets,
        num_failures=host.num_failures,
        failures=list(host.boot_failures.kept),
        leaks=host.leak_watch.leaks,
        pool=host.pool.report(host.desktops.values()),
        snapshots=await asyncio.to_thread(snapshot_use, host),
    )


def reset_times(host: DeskHost) -> ResetTimes:
    """Of the last minute."""
    since = time.monotonic() - RESET_WINDOW_S
    times = sorted(wall_s for at, wall_s in host.reset_times if at > since)
    if not times:
        return ResetTimes()
    return ResetTimes(
        count=len(times),
        p50_s=round(times[len(times) // 2], 4),
        p99_s=round(times[min(len(times) - 1, int(len(times) * 0.99))], 4),
    )
