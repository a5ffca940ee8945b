"""`DesktopEnv`: what an env worker does with one leased desktop.

    from training.types import Action
    from workers.deskhost.client import DeskHostClient
    from workers.desktop import DesktopEnv
    from workers.providers.base import DesktopSpec

    with DeskHostClient("var/deskhost/desk.sock") as client:        # `python -m workers.deskhost` runs
        lease = client.acquire("x11", DesktopSpec(width=512, height=384), holder="me", ttl_s=30)
        env = DesktopEnv(client, lease)
        try:
            env.reset()                                  # a clean desktop, 20-50 ms
            env.agent.put("~/note.txt", b"hello")        # setup, evaluators: files and commands
            env.agent.launch(["mousepad", "~/note.txt"])  # no shell: "~" is a path of put/get only
            env.wait_for_window("Mousepad")
            before = env.observe()                       # Frame(png, width, height, sha256, ...)
            env.act(Action(kind="click", x=200, y=150))
            after = env.observe()                        # waits until the screen has reacted and rests
            env.agent.execute("ls ~", shell=True).output
        finally:
            env.close()                                  # gives the lease back; the host cleans up

Life:  made -> reset -> (act, observe)* -> reset ... -> closed.
Not thread-safe; the lease must be renewed meanwhile (`deskhost.client.LeaseKeeper` does it).
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import Self

from PIL import Image

from training.types import Action
from workers import images
from workers.deskhost.client import DeskHostClient
from workers.deskhost.models import Lease
from workers.providers.agent_client import AgentClient
from workers.providers.base import EnvError, ErrorKind, ResetReport
from workers.providers.x11_display import X11Display
from workers.providers.x11_input import X11Input
from workers.providers.x11_windows import Window, Windows
from workers.settle import AT_ONCE, Settle, settle_for, wait_until_settled


@dataclass(frozen=True)
class Frame:
    """One screenshot, lossless."""

    png: bytes
    width: int
    height: int
    sha256: str
    """Of `png`; the frame's name everywhere."""
    raw_digest: str
    """Of the pixels; equal digests = equal screens."""
    taken_at: float
    """Wall clock, seconds since the epoch."""
    taken_monotonic_s: float

    def image(self) -> Image.Image:
        return images.open_png(self.png)


class DesktopEnv:
    """reset / act / observe / close over one leased desktop."""

    def __init__(self, client: DeskHostClient, lease: Lease) -> None:
        self._client = client
        self.lease = lease
        self._display: X11Display | None = None
        self._input: X11Input | None = None
        self._agent: AgentClient | None = None
        self._pending: Settle = AT_ONCE
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    # -- life -------------------------------------------------------------------------------

    def reset(self) -> ResetReport:
        """A clean desktop, rebuilt by the host when needed (also after it died). Raises EnvError."""
        result = self._client.reset(self.lease.desktop.desktop_id, self.lease.lease_id)
        if result.desktop.generation != self.lease.desktop.generation:
            self._disconnect()
        self.lease = self.lease.model_copy(update={"desktop": result.desktop})
        if self._input is not None:
            self._input.reread_keymap()
        self._pending = AT_ONCE
        return result.report

    def close(self) -> None:
        """Disconnect and give the lease back. Idempotent; a host that is gone does not matter here."""
        if self._closed:
            return
        self._closed = True
        self._disconnect()
        with contextlib.suppress(EnvError):
            self._client.release(self.lease.lease_id)

    def _disconnect(self) -> None:
        if self._display is not None:
            self._display.close()
        if self._agent is not None:
            self._agent.close()
        self._display = self._input = self._agent = None

    # -- connections, made on first use -----------------------------------------------------

    @property
    def display(self) -> X11Display:
        if self._display is None:
            with self._explained():
                endpoints = self.lease.desktop.endpoints
                self._display = X11Display(endpoints.display, endpoints.cpu_account)
        return self._display

    @property
    def agent(self) -> AgentClient:
        """execute, launch, put, get inside the desktop."""
        if self._agent is None:
            self._agent = AgentClient(self.lease.desktop.endpoints.agent)
        return self._agent

    @property
    def home(self) -> str:
        """HOME as programs in the desktop see it."""
        return self.lease.desktop.endpoints.home

    @property
    def size(self) -> tuple[int, int]:
        """Width and height, pixels."""
        return self.display.size

    @contextlib.contextmanager
    def _explained(self):
        """Add what the host knows to an error of a lost desktop."""
        try:
            yield
        except EnvError as exc:
            if exc.kind is not ErrorKind.INFRA:
                raise
            self._disconnect()
            reason = self._client.why_dead(self.lease.desktop.desktop_id)
            raise EnvError(f"{exc}. {reason}" if reason else str(exc)) from exc

    # -- acting and seeing ------------------------------------------------------------------

    def act(self, action: Action) -> None:
        """Do one action; the next `observe` (or `act`) waits for its effect.

        Raises ActionRefused (nothing done, the episode goes on) or EnvError.
        """
        with self._explained():
            if self._input is None:
                self._input = X11Input(self.display)
            # Keys overtake a click that the window manager still holds back, so wait if nobody looked.
            if self._pending.limit_s > 0:
                wait_until_settled(self.display, self._pending)
            self.display.forget_changes()
            self._input.perform(action)
        self._pending = settle_for(action.kind)

    def observe(self, settle: Settle | None = None) -> Frame:
        """The screen, after waiting for the last action's effect (or as `settle` says)."""
        wait = self._pending if settle is None else settle
        self._pending = AT_ONCE
        with self._explained():
            if wait.limit_s > 0:
                wait_until_settled(self.display, wait)
            taken_at, taken_monotonic_s = time.time(), time.monotonic()
            pixels = self.display.pixels()
        width, height = self.display.size
        image = images.image_of(pixels, width, height)
        png = images.png_of(image)
        return Frame(
            png=png,
            width=width,
            height=height,
            sha256=images.sha256(png),
            raw_digest=images.digest(image),
            taken_at=taken_at,
            taken_monotonic_s=taken_monotonic_s,
        )

    # -- windows ----------------------------------------------------------------------------

    def windows(self) -> list[Window]:
        """Managed windows, oldest first."""
        with self._explained():
            return Windows(self.display).list()

    def wait_for_window(self, text: str, *, timeout_s: float = 10.0, settled: bool = True) -> Window:
        """Wait for a window whose title or class contains `text`, then for it to be drawn.

        Raises EnvError (guest) naming the windows that are there instead.
        """
        deadline = time.monotonic() + timeout_s
        with self._explained():
            while True:
                found = Windows(self.display).find(text)
                if found is not None:
                    break
                if time.monotonic() > deadline:
                    seen = ", ".join(repr(w.title) for w in Windows(self.display).list()) or "none"
                    message = f"no window {text!r} after {timeout_s:g} s; windows: {seen}"
                    raise EnvError(message, kind=ErrorKind.GUEST)
                self.display.wait_change(0.02)
            if settled:
                wait_until_settled(self.display, Settle(first_change_s=0.1, quiet_s=0.06))
                found = self._wait_active(found)
        return found

    def _wait_active(self, window: Window, limit_s: float = 1.0) -> Window:
        """Keys sent before a new window has the focus are lost; some windows never ask for it."""
        deadline = time.monotonic() + limit_s
        while True:
            now = next((w for w in Windows(self.display).list() if w.window_id == window.window_id), window)
            if now.is_active or time.monotonic() > deadline:
                return now
            self.display.wait_change(0.02)

    def activate_window(self, text: str) -> bool:
        """Raise and focus a window by title or class; False when there is none."""
        with self._explained():
            return Windows(self.display).activate(text)

    def close_window(self, text: str) -> bool:
        """Ask a window to close, as its close button does; False when there is none."""
        with self._explained():
            return Windows(self.display).close(text)
