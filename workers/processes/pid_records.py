"""Pid records of started processes, so that a later start can end what is left of them.

A record names pid and start time: a pid that was given to another process since then does not match, and
nothing is ever ended by its name.
"""

import contextlib
import json
import logging
import os
from collections.abc import Iterable
from pathlib import Path

from workers.processes.cgroups import end_cgroup
from workers.processes.process_group import end_group, group_exists, start_ticks

log = logging.getLogger(__name__)


class PidRecords:
    """One small JSON file per started process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def names(self) -> list[str]:
        return sorted(path.stem for path in self.folder.glob("*.json"))

    def add(self, name: str, pid: int, cgroups: Iterable[str] = ()) -> None:
        """Remember the leader of a process group, and its control groups (folders)."""
        record = {"pid": pid, "start": start_ticks(pid), "name": name, "cgroups": list(cgroups)}
        partial = self.folder / f".{name}.part"
        partial.write_text(json.dumps(record))
        os.replace(partial, self.folder / f"{name}.json")

    def remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            (self.folder / f"{name}.json").unlink()

    def sweep(self, *, grace_s: float = 0.0) -> int:
        """End what an earlier start left; returns how many groups and members of control groups."""
        ended = 0
        for path in sorted(self.folder.glob("*.json")):
            try:
                record = json.loads(path.read_text())
                pid, start, cgroups = int(record["pid"]), record["start"], record["cgroups"]
            except (ValueError, KeyError, TypeError):
                path.unlink()  # half-written by a crash: it proves nothing about any process
                continue
            if start is not None and _is_left(pid, start):
                log.warning("ending the orphaned %s (pid %s)", path.stem, pid)
                end_group(pid, grace_s=grace_s)
                ended += 1
            ended += sum(end_cgroup(Path(cgroup)) for cgroup in cgroups)
            path.unlink()
        return ended


def _is_left(pid: int, start: int) -> bool:
    """The leader lives, or it has ended and members of its group live."""
    if Path(f"/proc/{pid}").exists():
        return start_ticks(pid) == start
    return group_exists(pid)
