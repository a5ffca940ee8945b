"""Looks for what no known desktop accounts for: processes, folders, records, control groups.

Only looks: what may be ended is decided by records (`workers.processes.pid_records`), never by a search.
A finding counts once two looks in a row have seen it, because starting and ending take a moment.
"""

import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

import psutil

from workers.desktops.host.desktop_files import DesktopFiles
from workers.desktops.host.messages import Leak
from workers.processes.cgroups import group_folders

CGROUPS = Path("/sys/fs/cgroup")
NAME = re.compile(r"[\w-]+")
GENERATION = re.compile(r"d[0-9a-f]{6}-\d+")
"""A desktop's; machines that become templates have groups as well, and no desktop."""


class LeakWatch:
    """Remembers the last look."""

    def __init__(self, files: DesktopFiles, cgroups: Path = CGROUPS) -> None:
        self._files = files
        self._cgroup_tree = cgroups
        self._seen: set[tuple[str, str]] = set()
        self.leaks: list[Leak] = []
        """Seen twice in a row."""

    def look(self, alive: Iterable[str]) -> None:
        """One look. `alive`: names of the generations that live, start or end.

        Walks all processes of the machine: call it from a thread.
        """
        known = set(alive)
        found = [
            *self._processes(known),
            *self._folders(known),
            *self._records_left(known),
            *self._cgroups(known),
        ]
        self.leaks = [leak for leak in found if (leak.kind, leak.name) in self._seen]
        self._seen = {(leak.kind, leak.name) for leak in found}

    def _processes(self, known: set[str]) -> list[Leak]:
        """Processes that name a folder of ours which is no living desktop's, on their command line."""
        prefix = os.fsencode(f"{self._files.folders}/")
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError, psutil.Error):  # it may have ended meanwhile
                words = (folder / "cmdline").read_bytes()  # empty of one that only waits to be collected
                name = NAME.match(words.partition(prefix)[2].decode(errors="replace"))
                pid = int(folder.name)
                if name and name[0] not in known and pid != os.getpid():
                    detail = f"{psutil.Process(pid).name()}, pid {pid}"
                    found.append(Leak(kind="process", name=f"{name[0]}:{pid}", detail=detail))
        return found

    def _folders(self, known: set[str]) -> list[Leak]:
        names = sorted(path.name for path in self._files.folders.iterdir() if path.name not in known)
        return [Leak(kind="folder", name=name, detail=str(self._files.folders / name)) for name in names]

    def _records_left(self, known: set[str]) -> list[Leak]:
        return [Leak(kind="record", name=name) for name in self._files.pids.names() if name not in known]

    def _cgroups(self, known: set[str]) -> list[Leak]:
        mark = f"deskhand-{os.getpid()}-"
        names = {folder: folder.name.removeprefix(mark) for folder in group_folders(mark, self._cgroup_tree)}
        return [
            Leak(kind="cgroup", name=str(folder.relative_to(self._cgroup_tree)))
            for folder, name in names.items()
            if GENERATION.fullmatch(name) and name not in known
        ]
