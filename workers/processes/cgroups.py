"""Control groups of desktops: made with their limits, read, ended and removed."""

import contextlib
import logging
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger("deskhost")

REMOVE_LIMIT_S = 20.0
STALE_AFTER_S = 60.0
"""Younger groups may belong to a desktop that another host is just starting."""
TREE = Path("/sys/fs/cgroup")
DELEGATED = "deskhand"
"""The group below the root that belongs to the desk host's own user."""


@dataclass(frozen=True)
class Cgroups:
    """The control groups of one desktop; no controller at all is a valid state."""

    folders: dict[str, Path]
    """controller -> folder"""

    @property
    def procs_files(self) -> list[str]:
        return [str(folder / "cgroup.procs") for folder in self.folders.values()]

    @property
    def cpu_account(self) -> str:
        """File with the CPU nanoseconds used so far, "" without accounting."""
        folder = self.folders.get("cpuacct")
        return str(folder / "cpuacct.usage") if folder else ""

    def cpu_s(self) -> float | None:
        """CPU seconds used so far, ended processes included; None without accounting."""
        try:
            if "cpuacct" in self.folders:
                return int((self.folders["cpuacct"] / "cpuacct.usage").read_text()) / 1e9
            if "unified" in self.folders:
                text = (self.folders["unified"] / "cpu.stat").read_text()
                return int(text.split()[1]) / 1e6
        except (OSError, ValueError, IndexError):
            return None
        return None

    def remove(self) -> None:
        """Remove the groups. Emptying them takes the kernel a moment, on a busy host seconds. Idempotent."""
        deadline = time.monotonic() + REMOVE_LIMIT_S
        for folder in self.folders.values():
            while folder.exists():
                try:
                    folder.rmdir()
                except OSError as exc:
                    if time.monotonic() > deadline:
                        log.warning("control group %s stays: %s", folder, exc)
                        break
                    time.sleep(0.01)


def own_cgroup(controller: str) -> str | None:
    """This process's path in a v1 hierarchy ("unified" = v2); None when it has none."""
    with open("/proc/self/cgroup", encoding="ascii") as file:
        for line in file:
            _, names, path = line.strip().split(":", 2)
            if controller in names.split(",") or (controller == "unified" and not names):
                return path
    return None


def usable_controllers() -> dict[str, Path]:
    """v1 controllers under which we may make groups: only where we sit in the hierarchy's root.

    A group below the root has another owner (systemd, a container), and a group has a single writer.
    An unprivileged host uses the group that root has handed over to its user.
    """
    usable = {}
    for controller in ("memory", "pids", "cpuacct"):
        for base in (TREE / controller, TREE / controller / DELEGATED):
            if own_cgroup(controller) == "/" and os.access(base, os.W_OK):
                usable[controller] = base
                break
    return usable


def hand_over(uid: int, gid: int) -> None:
    """Give a user a group of each controller that is usable here. Needs root."""
    for base in usable_controllers().values():
        folder = base / DELEGATED
        with contextlib.suppress(OSError):  # a read-only tree: then there are no groups
            folder.mkdir(exist_ok=True)
            for path in (folder, folder / "cgroup.procs", folder / "tasks"):
                os.chown(path, uid, gid)


def group_folders(mark: str, tree: Path = TREE) -> list[Path]:
    """Groups whose names begin with `mark`, of hosts of every user."""
    return [*tree.glob(f"*/{mark}*"), *tree.glob(f"*/{DELEGATED}/{mark}*")]


def make_cgroups(name: str, *, memory_mb: int, max_processes: int) -> Cgroups:
    """Groups with these limits where this machine allows them."""
    folders = {}
    for controller, base in usable_controllers().items():
        folder = base / f"deskhand-{name}"
        try:
            folder.mkdir(exist_ok=True)
            if controller == "memory":
                (folder / "memory.limit_in_bytes").write_text(str(memory_mb << 20))
            if controller == "pids":
                (folder / "pids.max").write_text(str(max_processes))
        except OSError:
            continue
        folders[controller] = folder
    return Cgroups(folders)


def used_cpu_s(account: str) -> float:
    """CPU seconds by the file `Cgroups.cpu_account`; 0 without one, and when its desktop has just gone."""
    try:
        with open(account, "rb") as file:
            return int(file.read()) / 1e9
    except OSError:
        return 0.0


def end_cgroup(folder: Path, limit_s: float = 2.0) -> int:
    """SIGKILL what is still in a control group of ours and remove the group; returns how many it was."""
    ended: set[int] = set()
    deadline = time.monotonic() + limit_s
    while folder.is_dir() and time.monotonic() < deadline:
        for pid in map(int, (folder / "cgroup.procs").read_text().split()):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
                ended.add(pid)
        with contextlib.suppress(OSError):
            folder.rmdir()
            break
        time.sleep(0.01)
    return len(ended)


def remove_empty_cgroups() -> None:
    """Remove empty groups of hosts that are gone together with their records; nothing is ended."""
    for folder in group_folders("deskhand-[0-9]*-d"):
        host_pid = folder.name.split("-")[1]
        with contextlib.suppress(OSError):  # not empty, or another host was faster
            is_old = time.time() - folder.stat().st_mtime > STALE_AFTER_S
            if is_old and not Path(f"/proc/{host_pid}").exists():
                folder.rmdir()
