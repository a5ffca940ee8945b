"""What does a call to the desk host cost beside its work? Desktops here cost nothing.

python -m benchmarks.desktops.host_calls [--calls 1000] [--threads 8] [--provider instant|x11]
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from benchmarks.report import finish, percentile, print_table
from training.contracts.config import Capability, ProviderInfo
from workers.desktops.contract import DesktopSpec, Endpoints, EnvError, Health, ResetReport, Usage
from workers.desktops.host.client import DeskHostClient
from workers.desktops.host.host import DeskHost
from workers.desktops.host.server import Server

PROVIDER = "instant"
SPEC = DesktopSpec()
MAX_P50_MS = 20.0
"""Half of the reset of a real desktop, with eight threads that do nothing but call."""


@dataclass
class InstantDesktop:
    """A desktop without processes."""

    pid: int = 0
    cgroups: list[str] = field(default_factory=list)
    endpoints: Endpoints = field(default_factory=Endpoints)
    memory_limit_mb: float = 1e9

    async def reset(self) -> ResetReport:
        return ResetReport()

    async def wait_dead(self) -> str:
        await asyncio.Event().wait()
        return ""

    async def destroy(self) -> None:
        pass

    def usage(self) -> Usage:
        return Usage()

    def private_mb(self) -> float:
        return 0.0


class InstantProvider:
    """Makes them in no time."""

    info = ProviderInfo(name=PROVIDER, title="Instant", capabilities=frozenset({Capability.RESET_IN_PLACE}))

    async def create(self, _name: str, _spec: DesktopSpec, _folder: Path) -> InstantDesktop:
        return InstantDesktop()

    def boot_phase(self, _name: str) -> str:
        return ""

    def probe(self) -> Health:
        return Health(provider=PROVIDER, usable=True)


async def serve(folder: Path) -> None:
    """The host's process."""
    host = DeskHost(folder, max_desktops=64)
    host.providers[PROVIDER] = InstantProvider()
    await Server(host).serve(folder / "s")


@contextmanager
def running(folder: Path) -> Iterator[psutil.Process]:
    """The host as a process of its own."""
    process = subprocess.Popen([sys.executable, "-m", __spec__.name, "--serve", str(folder)])
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                DeskHostClient(folder / "s").health()
                break
            except EnvError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


def measure(folder: Path, calls: int, threads: int, provider: str, server: psutil.Process) -> dict[str, Any]:
    """Milliseconds of `calls` of each sort, from `threads` at once, a lease each."""
    times: dict[str, list[float]] = {"lease": [], "heartbeat": [], "reset": []}
    cpu_before = sum(server.cpu_times()[:2])
    started = time.monotonic()

    def timed(name: str, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        began = time.perf_counter()
        answer = call(*arguments, **named)
        times[name].append((time.perf_counter() - began) * 1000)
        return answer

    def work(number: int) -> None:
        with DeskHostClient(folder / "s") as client:
            for _ in range(calls // threads):
                lease = timed("lease", client.acquire, provider, SPEC, holder=f"t{number}", ttl_s=60)
                timed("heartbeat", client.renew, lease.lease_id)
                timed("reset", client.reset, lease.desktop.desktop_id, lease.lease_id)
                client.release(lease.lease_id)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    took_s = time.monotonic() - started
    figures: dict[str, Any] = {
        name: {"p50_ms": round(percentile(values, 0.5), 2), "p99_ms": round(percentile(values, 0.99), 2)}
        for name, values in times.items()
    }
    figures["calls_per_s"] = round(4 * calls / took_s)
    figures["host_cpu_ms_per_call"] = round(
        (sum(server.cpu_times()[:2]) - cpu_before) * 1000 / (4 * calls), 3
    )
    figures["host_memory_mb"] = round(server.memory_info().rss / (1 << 20), 1)
    return figures


def main() -> int:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--calls", type=int, default=1000, help="of each sort")
    arguments.add_argument("--threads", type=int, default=8)
    arguments.add_argument("--provider", default=PROVIDER)
    arguments.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.serve:
        asyncio.run(serve(options.serve))
        return 0
    folder = Path(tempfile.mkdtemp(prefix="dh-", dir="/tmp"))
    try:
        with running(folder) as server:
            measure(folder, 10 * options.threads, options.threads, options.provider, server)
            figures = measure(folder, options.calls, options.threads, options.provider, server)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    times = {name: figures[name] for name in ("lease", "heartbeat", "reset")}
    print_table(("call", "p50 ms", "p99 ms"), [(name, *of.values()) for name, of in times.items()])
    slowest_ms = max(of["p50_ms"] for of in times.values())
    name = "desk_host_calls" if options.provider == PROVIDER else f"desk_host_calls_{options.provider}"
    return finish(
        name,
        figures | {"threads": options.threads},
        passed=options.provider != PROVIDER or slowest_ms <= MAX_P50_MS,
    )


if __name__ == "__main__":
    sys.exit(main())
