"""A sandbox as a desktop: what setup verbs, evaluators and episodes need, over a vendor's few calls."""

import base64
import binascii
import shlex
import time

from PIL import Image

from training.contracts.types import Action, ActionKind
from workers.desktops import frame_images
from workers.desktops.agent_contract import Agent, ExecResult, Waiting
from workers.desktops.console_contract import MAX_WAIT_S, Console
from workers.desktops.contract import EnvError, ErrorKind
from workers.desktops.driven_desktop import Desktop
from workers.desktops.screen_settling import Pace
from workers.environments.decoded_frames import frame_of
from workers.environments.gateway.vendor_contract import ReadingVendor, Sandbox, SandboxVendor
from workers.environments.gateway.window_control import ShellWindows

CHUNK = 48 * 1024
"""Bytes per command of an upload; a multiple of 3, and its base64 stays below the kernel's argument limit."""
NO_FILE = 44
PATH = 'p=$1; case $p in "~") p=$HOME;; "~/"*) p=$HOME/${p#"~/"};; esac; '
"""~ is HOME, as everywhere in tasks."""
POLL_S = 0.05


class SandboxDesktop(Desktop):
    def __init__(self, vendor: SandboxVendor, sandbox: Sandbox, *, lossless_only: bool) -> None:
        self._agent = SandboxAgent(vendor, sandbox)
        self._console = SandboxConsole(vendor, sandbox, self._agent, lossless_only=lossless_only)

    @property
    def provider(self) -> str:
        return "gateway"

    @property
    def console(self) -> Console:
        return self._console

    @property
    def agent(self) -> Agent:
        return self._agent


class SandboxAgent:
    """Files and programs of a sandbox by commands alone."""

    platform = "linux"

    def __init__(self, vendor: SandboxVendor, sandbox: Sandbox) -> None:
        self._vendor = vendor
        self._sandbox = sandbox

    def use_place(self, timezone: str, locale: str) -> None:
        message = "a sandbox keeps its image's time zone and locale: the task's cannot be set"
        raise EnvError(message, kind=ErrorKind.TASK, permanent=True)

    def waiting(self) -> Waiting | None:
        return None

    def accessibility(self) -> str:
        return self._reading.accessibility(self._sandbox)

    def terminal(self) -> str:
        return self._reading.terminal(self._sandbox)

    @property
    def _reading(self) -> ReadingVendor:
        if isinstance(self._vendor, ReadingVendor):
            return self._vendor
        message = "this vendor's sandboxes give neither accessibility tree nor terminal"
        raise EnvError(message, kind=ErrorKind.TASK, permanent=True)

    def begin_evaluation(self) -> None:
        """A vendor has no such call."""

    def open_file(self, path: str) -> None:
        script = PATH + '[ -e "$p" ] || exit 44; exec xdg-open "$p"'
        self.launch(["sh", "-c", script, "sh", path])

    def execute(
        self, command: str | list[str], *, shell: bool = False, timeout_s: float = 60.0
    ) -> ExecResult:
        return self._vendor.execute(self._sandbox, command, shell=shell, timeout_s=timeout_s)

    def launch(
        self, command: str | list[str], *, shell: bool = False, env: dict[str, str] | None = None
    ) -> int:
        """Start a program; vendors do not tell its pid, so it is 0."""
        if env:
            words = [f"{key}={value}" for key, value in env.items()]
            text = command if isinstance(command, str) else shlex.join(command)
            command, shell = f"env {shlex.join(words)} {text}", True
        self._vendor.launch(self._sandbox, command, shell=shell)
        return 0

    def put(self, path: str, data: bytes) -> None:
        self._script(PATH + 'mkdir -p "$(dirname "$p")" && : > "$p"', path)
        for start in range(0, len(data), CHUNK):
            piece = base64.b64encode(data[start : start + CHUNK]).decode()
            self._script(PATH + 'printf %s "$2" | base64 -d >> "$p"', path, piece)

    def get(self, path: str) -> bytes | None:
        result = self._run(PATH + '[ -e "$p" ] || exit 44; base64 < "$p"', path)
        if result.returncode == NO_FILE:
            return None
        if result.returncode:
            raise EnvError(f"{path} could not be read: {result.error[:200]}", kind=ErrorKind.GUEST)
        try:
            return base64.b64decode("".join(result.output.split()), validate=True)
        except binascii.Error as error:
            raise EnvError(f"{path} arrived damaged", kind=ErrorKind.GUEST) from error

    def close(self) -> None:
        """Nothing is held open."""

    def _script(self, script: str, path: str, *arguments: str) -> None:
        result = self._run(script, path, *arguments)
        if result.returncode:
            raise EnvError(f"{path} could not be written: {result.error[:200]}", kind=ErrorKind.GUEST)

    def _run(self, script: str, *arguments: str) -> ExecResult:
        return self.execute(["sh", "-c", script, "sh", *arguments], timeout_s=60.0)


class SandboxConsole:
    """Screen and input of a sandbox; changes are seen by comparing screenshots."""

    pace = Pace(first_change=4.0, quiet=6.0, limit=2.0)
    """A look costs a round trip, and the screen may follow the input late."""

    def __init__(
        self, vendor: SandboxVendor, sandbox: Sandbox, agent: SandboxAgent, *, lossless_only: bool
    ) -> None:
        self._vendor = vendor
        self._sandbox = sandbox
        self._lossless_only = lossless_only
        self._seen = ""
        """Digest of the screen that changes are counted from."""
        self.windows = ShellWindows(agent)

    @property
    def size(self) -> tuple[int, int]:
        return self._sandbox.width, self._sandbox.height

    def image(self) -> Image.Image:
        frame = frame_of(self._vendor.screenshot(self._sandbox), lossless_only=self._lossless_only)
        if (frame.width, frame.height) != self.size:
            have, want = f"{frame.width}x{frame.height}", "x".join(map(str, self.size))
            raise EnvError(f"the sandbox's screenshot is {have} instead of {want}", permanent=True)
        return frame.image()

    def color_at(self, x: int, y: int) -> str:
        red, green, blue = self.image().getpixel((x, y))  # type: ignore[misc]
        return f"#{red:02x}{green:02x}{blue:02x}"

    def perform(self, action: Action) -> None:
        if action.kind is ActionKind.WAIT:
            time.sleep(min(action.seconds, MAX_WAIT_S))
        elif action.kind is not ActionKind.TERMINATE:
            self._vendor.input(self._sandbox, action)

    def let_go(self) -> None:
        """People do not reach sandboxes, and a vendor's input is whole actions."""

    def forget_changes(self) -> None:
        self._seen = frame_images.digest(self.image())

    def wait_change(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while True:
            now = frame_images.digest(self.image())
            if now != self._seen:
                self._seen = now
                return True
            if time.monotonic() + POLL_S > deadline:
                return False
            time.sleep(POLL_S)

    def cpu_s(self) -> float:
        return 0.0

    def after_reset(self) -> None:
        self._seen = ""

    def close(self) -> None:
        """Nothing is held open."""
