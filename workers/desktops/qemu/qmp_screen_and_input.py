"""Console `qmp`: screen and input of a virtual machine through QEMU's monitor.

Pictures come from the emulated display (13 ms at 1280 x 720), not from a program in the guest (300 ms
and more). There is no notification of changes, so pictures are compared.
"""

import contextlib
import hashlib
import os
import threading
import time
from pathlib import Path

from PIL import Image

from training.contracts.types import Action
from workers.desktops.agent_client import AgentClient
from workers.desktops.console_contract import ActionRefused
from workers.desktops.contract import Endpoints, EnvError
from workers.desktops.paste_keys import paste_by
from workers.desktops.qemu.monitor_client import QmpClient
from workers.desktops.qemu.monitor_input import QmpInput
from workers.desktops.qemu.window_control import AgentWindows
from workers.desktops.screen_settling import Pace, host_strain
from workers.processes.cgroups import used_cpu_s

POLL_S = 0.03
BUSY_S = 0.012
"""CPU seconds of work in a tenth of a second."""
AGENT_LIMIT_S = 60.0
MAX_LIMIT = 8.0
"""Factor on the wait for screens that never rest."""
PPM = b"P6"
TYPE_CODE = "import pyautogui; pyautogui.FAILSAFE = False; pyautogui.write({text!r})"
COPY_CODE = 'printf %s "$1" | xclip -selection "$2" > /dev/null 2>&1'


class QmpConsole:
    """One machine's screen, keys and pointer; its windows by its agent."""

    def __init__(self, endpoints: Endpoints) -> None:
        self._client = QmpClient(endpoints.qmp)
        self._folder = Path(endpoints.qmp).parent
        self._cpu_account = endpoints.cpu_account
        self._agent = AgentClient(endpoints.agent, timeout_s=AGENT_LIMIT_S) if endpoints.agent else None
        self._picture_name = f"look-{os.getpid()}-{threading.get_ident()}-{id(self)}.ppm"
        self._size: tuple[int, int] | None = None
        self._seen = ""
        self._pictures_s = 0.0
        """CPU seconds that our own pictures took: QEMU makes them, several a second while we wait."""
        self.windows = AgentWindows(self._agent, endpoints.display_wait_s) if self._agent else None
        has_agent = self._agent is not None
        self._input = QmpInput(
            self._client,
            lambda: self.size,
            self._type_inside if has_agent else None,
            self._ask_inside if has_agent else None,
            self._copy_inside if has_agent else None,
        )

    @property
    def pace(self) -> Pace:
        """An emulated guest repaints 100 to 550 ms after an event, and opens an editor in 5 to 12 s.

        At rest it uses 1 to 4 % of a core, at work all that it gets. On a starved host that is less, so
        every wait is stretched by the host's load, and with it what counts as work in that time.
        """
        strain = host_strain()
        return Pace(
            first_change=5.0 * strain,
            quiet=5.0 * strain,
            limit=min(3.0 * strain, MAX_LIMIT),
            busy_s=BUSY_S * strain,
            patience=30.0,
        )

    @property
    def size(self) -> tuple[int, int]:
        if self._size is None:
            self._size = self.image().size
        return self._size

    def _ppm(self) -> bytes:
        """The screen as a PPM file. QEMU writes it into the machine's folder, which goes with the machine."""
        path = self._folder / self._picture_name
        before_s = used_cpu_s(self._cpu_account)
        self._client.execute("screendump", filename=str(path), format="ppm")
        self._pictures_s += used_cpu_s(self._cpu_account) - before_s
        try:
            return path.read_bytes()
        except OSError as exc:
            raise EnvError(f"the machine is gone: {exc}") from exc
        finally:
            with contextlib.suppress(OSError):
                path.unlink()

    def image(self) -> Image.Image:
        image = image_of_ppm(self._ppm())
        self._size = image.size
        return image

    def color_at(self, x: int, y: int) -> str:
        pixel = self.image().getpixel((x, y))
        assert isinstance(pixel, tuple)
        return "#{:02x}{:02x}{:02x}".format(*pixel)

    def perform(self, action: Action) -> None:
        self._input.perform(action)

    def let_go(self) -> None:
        self._input.let_go()

    def _type_inside(self, text: str) -> None:
        assert self._agent is not None
        done = self._agent.execute(["python", "-c", TYPE_CODE.format(text=text)])
        if done.returncode:
            raise ActionRefused(f"{text[:20]!r} could not be typed in the guest: {done.error.strip()[-200:]}")

    def _copy_inside(self, text: str) -> tuple[str, ...]:
        assert self._agent is not None
        assert self.windows is not None
        window = next((window for window in self.windows.all() if window.is_active), None)
        selection, keys = paste_by(window.window_class if window else "")
        done = self._agent.execute(["sh", "-c", COPY_CODE, "sh", text, selection.lower()])
        if done.returncode:
            raise ActionRefused(f"the guest's clipboard does not take the text: {done.error.strip()[-200:]}")
        return keys

    def _ask_inside(self) -> None:
        assert self._agent is not None
        self._agent.call("GET", "/")

    def forget_changes(self) -> None:
        self._seen = digest(self._ppm())

    def wait_change(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while True:
            now = digest(self._ppm())
            if now != self._seen:
                self._seen = now
                return True
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return False
            time.sleep(min(POLL_S, left_s))

    def cpu_s(self) -> float:
        """CPU seconds of the whole machine so far without our pictures; 0 where they are not counted."""
        return used_cpu_s(self._cpu_account) - self._pictures_s

    def after_reset(self) -> None:
        self._seen, self._size, self._pictures_s = "", None, 0.0

    def close(self) -> None:
        self._client.close()
        if self._agent is not None:
            self._agent.close()


def digest(ppm: bytes) -> str:
    return hashlib.sha1(ppm, usedforsecurity=False).hexdigest()


def image_of_ppm(ppm: bytes) -> Image.Image:
    """RGB image of a binary PPM as QEMU writes it: header in three lines. Raises EnvError."""
    try:
        magic, size, depth, pixels = ppm.split(b"\n", 3)
        width, height = map(int, size.split())
        if magic != PPM or depth != b"255":
            raise ValueError(f"header {ppm[:20]!r}")
        return Image.frombytes("RGB", (width, height), pixels)
    except ValueError as exc:
        raise EnvError(f"QEMU's picture of the screen cannot be read: {exc}") from exc
