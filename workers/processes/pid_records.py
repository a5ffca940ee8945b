"""Pid records of the processes this host started, so that a later host can end what is left of them.

A record names pid and start time; a pid that was given to another process since then does not match.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import time
from pathlib import Path

STALE_AFTER_S = 60.0
"""Younger groups may belong to a desktop that another host is just starting."""


def start_ticks(pid: int) -> int | None:
    """Start time of a process in clock ticks since boot; None when there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


class PidRecords:
    """One small JSON file per started process, and one folder per desktop."""

    def __init__(self, state_dir: Path) -> None:
        self.folder = state_dir / "pids"
        self.desktops = state_dir / "d"
        for folder in (self.folder, self.desktops):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def add(self, name: str, pid: int, cgroups: list[str]) -> None:
        """Remember a desktop's first process and its control groups (folders)."""
        record = {"pid": pid, "start": start_ticks(pid), "name": name, "cgroups": cgroups}
        partial = self.folder / f".{name}.part"
        partial.write_text(json.dumps(record))
        os.replace(partial, self.folder / f"{name}.json")

    def remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            (self.folder / f"{name}.json").unlink()

    def sweep(self) -> int:
        """End what an earlier host started and left; returns how many processes. Never by name."""
        ended = 0
        for path in sorted(self.folder.glob("*.json")):
            try:
                record = json.loads(path.read_text())
                pid, start, groups = int(record["pid"]), record["start"], record["cgroups"]
            except (ValueError, KeyError, TypeError):
                path.unlink()  # half-written by a crash: it proves nothing about any process
                continue
            if start is not None and start_ticks(pid) == start:
                ended += 1
                end_process_group(pid)
            for group in groups:
                ended += end_cgroup(Path(group))
            path.unlink()
        remove_empty_cgroups()
        for folder in self.desktops.iterdir():
            shutil.rmtree(folder, ignore_errors=True)
        return ended


def end_process_group(pid: int, limit_s: float = 5.0) -> None:
    """SIGKILL a process that leads its own session, with its group, and wait until it is gone."""
    start = start_ticks(pid)
    for end in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            end(pid, signal.SIGKILL)
    deadline = time.monotonic() + limit_s
    while start_ticks(pid) == start and start is not None and time.monotonic() < deadline:
        time.sleep(0.01)


def end_cgroup(folder: Path, limit_s: float = 2.0) -> int:
    """SIGKILL what is still in a control group of ours and remove the group; returns how many it was."""
    ended: set[int] = set()
    deadline = time.monotonic() + limit_s
    while folder.is_dir() and time.monotonic() < deadline:
        for pid in map(int, (folder / "cgroup.procs").read_text().split()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                ended.add(pid)
        with contextlib.suppress(OSError):
            folder.rmdir()
            break
        time.sleep(0.01)
    return len(ended)


def remove_empty_cgroups() -> None:
    """Remove empty groups of hosts that are gone together with their records; nothing is ended."""
    for folder in Path("/sys/fs/cgroup").glob("*/deskhand-*-d*"):
        host_pid = folder.name.split("-")[1]
        with contextlib.suppress(OSError):  # not empty, or another host was faster
            is_old = time.time() - folder.stat().st_mtime > STALE_AFTER_S
            if is_old and not Path(f"/proc/{host_pid}").exists():
                folder.rmdir()
