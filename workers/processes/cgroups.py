"""Ends what is left in control groups of desktops."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

STALE_AFTER_S = 60.0
"""Younger groups may belong to a desktop that another host is just starting."""


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
