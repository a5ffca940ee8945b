"""How commands are written for each of the two guest systems; one row each.

On Windows the agent is a service: it runs as SYSTEM, in session 0, so it reaches files and the registry but
not the user's screen. What must happen there goes through `workers.desktops.windows.user_session`.
"""

import base64
import ntpath
import posixpath
import shlex
from typing import Protocol

from workers.desktops.agent_contract import ExecResult
from workers.desktops.contract import EnvError, ErrorKind
from workers.desktops.windows.user_session import UserSession

DISPLAY = ":0"
PREFACE = "$ProgressPreference='SilentlyContinue';[Console]::OutputEncoding=[Text.UTF8Encoding]::new($false);"
"""Without these PowerShell writes progress as XML and text in the console's old code page."""


class GuestPrograms(Protocol):
    """What a platform needs of the guest's agent."""

    def execute(
        self, command: str | list[str], *, shell: bool = False, timeout_s: float = 60.0
    ) -> ExecResult:
        """Run a command to its end."""

    def start(self, argv: list[str], env: list[str] | None = None) -> int:
        """Start a program as the agent's own user; its pid in the guest."""

    def put(self, path: str, data: bytes) -> None:
        """Write a file."""

    def get(self, path: str) -> bytes | None:
        """A file's bytes, None when there is no such file."""


class Platform(Protocol):
    """Differences between guests."""

    name: str

    def shell(self, script: str) -> list[str]:
        """The argv that runs a shell script."""

    def split(self, command: str) -> list[str]:
        """A command line as argv."""

    def expand(self, path: str) -> str:
        """A path with the home folder written out."""

    def exists(self, agent: GuestPrograms, path: str) -> bool:
        """Whether there is anything at `path`."""

    def make_folder(self, agent: GuestPrograms, path: str) -> None:
        """Make the folder that `path` lies in."""

    def launch(self, agent: GuestPrograms, argv: list[str], env: dict[str, str]) -> int:
        """Start a program on the user's screen."""


class LinuxPlatform:
    """A Debian guest whose X session, if any, is display :0."""

    name = "linux"
    home = "/home/user"

    def shell(self, script: str) -> list[str]:
        return ["/bin/sh", "-c", script]

    def split(self, command: str) -> list[str]:
        return shlex.split(command)

    def expand(self, path: str) -> str:
        return self.home + path[1:] if path == "~" or path.startswith("~/") else path

    def exists(self, agent: GuestPrograms, path: str) -> bool:
        return agent.execute(["test", "-e", path]).returncode == 0

    def make_folder(self, agent: GuestPrograms, path: str) -> None:
        folder = posixpath.dirname(path)
        result = agent.execute(["mkdir", "-p", "--", folder])
        if result.returncode:
            raise EnvError(f"{folder} could not be made: {result.error.strip()}", kind=ErrorKind.GUEST)

    def launch(self, agent: GuestPrograms, argv: list[str], env: dict[str, str]) -> int:
        values = {"DISPLAY": DISPLAY, "HOME": self.home, "PATH": "/usr/local/bin:/usr/bin:/bin"} | env
        return agent.start(argv, [f"{name}={value}" for name, value in values.items()])


class WindowsPlatform:
    """Windows 10, 11, Server 2016 or newer."""

    name = "windows"

    def shell(self, script: str) -> list[str]:
        # Encoded: the agent quotes arguments for C programs, which neither cmd nor PowerShell undo.
        encoded = base64.b64encode((PREFACE + script).encode("utf-16-le")).decode()
        return ["powershell.exe", "-NoProfile", "-NonInteractive", "-EncodedCommand", encoded]

    def split(self, command: str) -> list[str]:
        # Backslashes are part of Windows paths, so only quotes group words.
        return [word.strip('"') for word in shlex.split(command, posix=False)]

    def expand(self, path: str) -> str:
        if path.startswith("~"):
            message = f"{path}: a Windows guest's agent has no home folder; write the whole path"
            raise EnvError(message, kind=ErrorKind.TASK, permanent=True)
        return path

    def exists(self, agent: GuestPrograms, path: str) -> bool:
        found = agent.execute(["cmd.exe", "/d", "/c", "if", "exist", path, "(echo", "yes)"])
        return "yes" in found.output

    def make_folder(self, agent: GuestPrograms, path: str) -> None:
        folder = ntpath.dirname(path)
        if ntpath.splitdrive(folder)[1] in ("", "\\") or self.exists(agent, folder):
            return
        result = agent.execute(["cmd.exe", "/d", "/c", "mkdir", folder])
        if result.returncode:
            raise EnvError(f"{folder} could not be made: {result.error.strip()}", kind=ErrorKind.GUEST)

    def launch(self, agent: GuestPrograms, argv: list[str], env: dict[str, str]) -> int:
        if env:
            message = "launch takes no environment on a Windows guest"
            raise EnvError(message, kind=ErrorKind.TASK, permanent=True)
        UserSession(agent).launch(argv)
        return 0


LINUX = LinuxPlatform()
PLATFORMS: dict[str, Platform] = {"linux": LINUX, "windows": WindowsPlatform()}
