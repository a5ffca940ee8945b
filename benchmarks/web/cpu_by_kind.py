"""CPU that the processes of a private installation take, by what they are."""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import psutil

from testing.private_postgres import Cluster

IDLE_S = 20.0


def cpu_by_kind(folder: Path, cluster: Cluster) -> Counter[str]:
    """CPU seconds so far: env workers, dispatcher, web, Redis, PostgreSQL, driver."""
    found: Counter[str] = Counter()
    names = {"toy_worker": "env workers", " dispatch": "dispatcher", "uvicorn": "web", "redis": "redis"}
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            line = " ".join(process.cmdline())
            times = process.cpu_times()
            if process.pid == os.getpid():
                kind = "driver"
            elif str(folder) in line or process.environ().get("DESKHAND_DATA_DIR") == str(folder):
                kind = next((kind for word, kind in names.items() if word in line), "")
            else:
                continue
            if kind:
                found[kind] += times.user + times.system
    server = psutil.Process(int((cluster.folder / "data" / "postmaster.pid").read_text().split()[0]))
    # Each connection is a process; one that ended is counted by its parent.
    times = server.cpu_times()
    found["postgresql"] = times.user + times.system + times.children_user + times.children_system
    for process in server.children(recursive=True):
        with suppress(psutil.Error):
            times = process.cpu_times()
            found["postgresql"] += times.user + times.system
    return found


def idle_host(folder: Path, cluster: Cluster, num_hosts: int) -> dict[str, float]:
    """Milliseconds of CPU that a host without work takes each second, of each kind of process."""
    before, began = cpu_by_kind(folder, cluster), time.monotonic()
    time.sleep(IDLE_S)
    after, took_s = cpu_by_kind(folder, cluster), time.monotonic() - began
    kinds = ("env workers", "postgresql", "dispatcher", "web", "redis")
    return {kind: 1000 * (after[kind] - before[kind]) / took_s / num_hosts for kind in kinds}
