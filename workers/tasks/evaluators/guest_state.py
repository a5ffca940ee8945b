"""Reading a guest's processes, windows, files and settings: one row per operating system.

On Windows a setting is a registry value; on Linux, where the checkers are proven, a line NAME=VALUE.
"""

import csv
import re
import shlex
from typing import Any, Protocol

from workers.desktops.contract import EnvError, ErrorKind
from workers.desktops.windows.user_session import UserSession
from workers.tasks.errors import EvaluatorError, TaskErrorKind
from workers.tasks.task_desktop_contract import TaskDesktop

DEPTH = 3
"""Folders below the one asked for that are listed."""


class GuestState(Protocol):
    """What checkers may ask."""

    def processes(self, desktop: TaskDesktop) -> list[str]:
        """Names of the running programs."""

    def windows(self, desktop: TaskDesktop) -> list[dict[str, Any]]:
        """[{title, program, active}]"""

    def files(self, desktop: TaskDesktop, folder: str) -> list[dict[str, Any]]:
        """[{path, folder}]: everything below `folder`, relative to it, with /."""

    def setting(self, desktop: TaskDesktop, key: str, name: str) -> dict[str, Any]:
        """{key: whether the key exists, value: text or None}"""


class LinuxState:
    """A Linux desktop with the usual X tools."""

    def processes(self, desktop: TaskDesktop) -> list[str]:
        # Some end while they are listed, which is no failure.
        return _output(desktop, "cat /proc/[0-9]*/comm 2>/dev/null || true").splitlines()

    def windows(self, desktop: TaskDesktop) -> list[dict[str, Any]]:
        active = _output(desktop, "xprop -root _NET_ACTIVE_WINDOW; true").rpartition("#")[2].strip()
        found = []
        for line in _output(desktop, "wmctrl -l -x").splitlines():
            window, _, program, _, title = (line.split(None, 4) + [""] * 5)[:5]
            found.append(
                {
                    "title": title,
                    "program": program.partition(".")[0],
                    "active": _number(window) == _number(active),
                }
            )
        return found

    def files(self, desktop: TaskDesktop, folder: str) -> list[dict[str, Any]]:
        found = []
        for kind in "df":
            listing = f"find . -mindepth 1 -maxdepth {DEPTH} -type {kind}"
            script = f"cd {shlex.quote(folder)} 2>/dev/null || exit 0; {listing}"
            paths = _output(desktop, script).splitlines()
            found += [{"path": path.removeprefix("./"), "folder": kind == "d"} for path in paths]
        return found

    def setting(self, desktop: TaskDesktop, key: str, name: str) -> dict[str, Any]:
        raw = desktop.agent.get(key)
        lines = (raw or b"").decode(errors="replace").splitlines()
        pairs = [(left.strip(), value.strip()) for left, _, value in (line.partition("=") for line in lines)]
        return {"key": raw is not None, "value": dict(pairs).get(name)}


class WindowsState:
    """Windows, through its own console programs and the user's session."""

    def processes(self, desktop: TaskDesktop) -> list[str]:
        result = desktop.agent.execute(["tasklist.exe", "/fo", "csv", "/nh"])
        if result.returncode:
            raise _unreadable("tasklist", result.error)
        return [row[0] for row in csv.reader(result.output.splitlines()) if row]

    def windows(self, desktop: TaskDesktop) -> list[dict[str, Any]]:
        return UserSession(desktop.agent).windows()

    def files(self, desktop: TaskDesktop, folder: str) -> list[dict[str, Any]]:
        folders = self._listed(desktop, folder, "/ad")
        files = self._listed(desktop, folder, "/a-d")
        return [
            *({"path": path, "folder": True} for path in folders),
            *({"path": path, "folder": False} for path in files),
        ]

    def _listed(self, desktop: TaskDesktop, folder: str, kind: str) -> list[str]:
        # dir ends with 1 when nothing is there, which is an answer.
        listing = desktop.agent.execute(["cmd.exe", "/d", "/c", "dir", "/s", "/b", kind, folder]).output
        root = folder.rstrip("\\").lower() + "\\"
        below = [line[len(root) :] for line in listing.splitlines() if line.lower().startswith(root)]
        return [path.replace("\\", "/") for path in below if path.count("\\") < DEPTH]

    def setting(self, desktop: TaskDesktop, key: str, name: str) -> dict[str, Any]:
        """`key` may begin with HKCU, which then means the logged-in user, not the agent's SYSTEM."""
        if key.upper().startswith("HKCU\\"):
            key = f"HKU\\{self._user(desktop)}\\{key[5:]}"
        if desktop.agent.execute(["reg.exe", "query", key]).returncode:
            return {"key": False, "value": None}
        result = desktop.agent.execute(["reg.exe", "query", key, "/v", name])
        return {"key": True, "value": None if result.returncode else registry_value(result.output, name)}

    def _user(self, desktop: TaskDesktop) -> str:
        hives = desktop.agent.execute(["reg.exe", "query", "HKU"]).output
        users = re.findall(r"^HKEY_USERS\\(S-1-5-21-[\d-]+)\s*$", hives, re.MULTILINE)
        if len(users) != 1:
            raise _unreadable("HKCU", f"{len(users)} users are logged in, one is needed")
        return users[0]


def registry_value(output: str, name: str) -> str | None:
    """The data of one value in reg's answer; numbers (0x1f) as decimals."""
    for line in output.splitlines():
        match = re.match(rf"\s+{re.escape(name)}\s+(REG_\w+)(?:\s+(.*))?$", line.rstrip(), re.IGNORECASE)
        if match:
            data = match[2] or ""
            return str(int(data, 16)) if match[1] in ("REG_DWORD", "REG_QWORD") else data
    return None


STATES: dict[str, GuestState] = {"linux": LinuxState(), "windows": WindowsState()}


def state_of(desktop: TaskDesktop) -> GuestState:
    """The row of this desktop's operating system."""
    return STATES[desktop.agent.platform]


def _output(desktop: TaskDesktop, script: str) -> str:
    """A command's output. Raises EnvError (guest) when it fails: no answer must never look like "nothing"."""
    result = desktop.agent.execute(script, shell=True)
    if result.returncode:
        raise EnvError(f"{script.split()[0]} failed: {result.error.strip()[:200]}", kind=ErrorKind.GUEST)
    return result.output


def _unreadable(what: str, why: str) -> EvaluatorError:
    return EvaluatorError(
        TaskErrorKind.DESKTOP, f"{what} could not be read in the guest: {why.strip()[:200]}"
    )


def _number(text: str) -> int:
    try:
        return int(text, 16)
    except ValueError:
        return -1
