"""Where the programs of a virtual machine live: as another user than the agent, out of its reach.

    agent, X server                            root
      ├─ commands of evaluators                the user, in the agent's pid namespace: they see all programs
      └─ programs' pid namespace               the user: sees and signals nothing of the above

A machine is never cleaned but replaced, so this space is made once.
"""

import contextlib
import os
import pwd
import subprocess

from workers.guest.kernel_calls import die_with_parent, limit_files
from workers.guest.program_space import (
    FIRST_PROCESS,
    GROUPS,
    JUDGES,
    PROGRAMS,
    Door,
    see_own_processes,
    spawn_first,
)
from workers.guest.session_layout import Layout

MEMORY_SHARE = 0.6
"""Of the machine's memory, for all programs and the files that they keep in it."""
SPARED_LAST = "-1000"
ROOT_DEVICE = "/dev/vda"
INODES_PER_DISK_MB = 32
"""Files of 32 KiB each fill the room; the disk has 64 per MiB for all users together."""


class MachineSpace:
    """Programs' namespace and groups; looks like a ProgramSpace to the agent."""

    bus: "subprocess.Popen | None" = None

    def __init__(self, layout: Layout) -> None:
        """Raises OSError."""
        account = pwd.getpwnam(layout.user)
        make_group(JUDGES, {})
        is_limited = "limits" not in layout.weakened
        make_group(PROGRAMS, limits(layout) if is_limited else {})
        if is_limited:
            inodes = layout.disk_mb * INODES_PER_DISK_MB
            limit_files(ROOT_DEVICE, account.pw_uid, space_mb=layout.disk_mb, inodes=inodes)
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write(SPARED_LAST)
        self._process, ready_pipe = spawn_first(["/bin/sh", "-c", FIRST_PROCESS], _stage)
        with ready_pipe:
            if not ready_pipe.readline():
                raise OSError(f"no space for programs: its first process ended with {self._process.wait()}")
        self.door = Door(os.getpid(), self._process.pid, uid=account.pw_uid, gid=account.pw_gid)

    def pids(self) -> set[int]:
        """Its own process; none of a program."""
        return {self._process.pid}

    def end_judges(self) -> None:
        """End what commands of evaluators left running; programs go on."""
        with contextlib.suppress(FileNotFoundError):
            write_setting(JUDGES, "cgroup.kill", "1")


def _stage() -> None:
    die_with_parent()
    see_own_processes()


def limits(layout: Layout) -> dict[str, str]:
    """What all programs together may take."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {"pids.max": str(layout.max_processes), "memory.max": str(int(memory * MEMORY_SHARE))}


def make_group(name: str, settings: dict[str, str]) -> None:
    """A control group with these settings. Raises OSError."""
    os.makedirs(f"{GROUPS}/{name}", exist_ok=True)
    for key, value in settings.items():
        write_setting(name, key, value)


def write_setting(group: str, key: str, value: str) -> None:
    with open(f"{GROUPS}/{group}/{key}", "w", encoding="ascii") as file:
        file.write(value)
