"""`DesktopEnv`: what an env worker does with one leased desktop.

    from training.contracts.types import Action
    from workers.desktops.frame import Frame
from workers.desktops.host.client import DeskHostClient
    from workers.desktops.leased_desktop import DesktopEnv
    from workers.desktops.contract import DesktopSpec

    with DeskHostClient("var/deskhost/desk.sock") as client:        # `python -m workers.desktops.host` runs
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
from collections.abc import Callable, Iterator
from typing import Self

from training.contracts.types import Action
from workers.desktops.agent_contract import Agent
from workers.desktops.console_contract import Console, Window, WindowManager, require_typable
from workers.desktops.contract import EnvError, ErrorKind, ResetReport
from workers.desktops.frame import Frame
from workers.desktops.host.client import DeskHostClient
from workers.desktops.host.messages import DesktopInfo, KeptSnapshot, Lease
from workers.desktops.registry import open_agent, open_console
from workers.desktops.screen_settling import AT_ONCE, SettleLimits, settle_limits_for, wait_until_settled


class Desktop:
    """act / observe / windows over a console; who makes the desktop is a subclass's matter."""

    _pending: SettleLimits = AT_ONCE
    _last_frame: Frame | None = None

    @property
    def provider(self) -> str:
        """Where it comes from."""
        raise NotImplementedError

    @property
    def console(self) -> Console:
        """Its screen and input."""
        raise NotImplementedError

    @property
    def agent(self) -> Agent:
        """execute, launch, put, get inside the desktop."""
        raise NotImplementedError

    @contextlib.contextmanager
    def _with_host_reason(self) -> Iterator[None]:
        """Around everything that may find the desktop lost."""
        yield

    # -- acting and seeing ------------------------------------------------------------------

    def act(self, action: Action) -> None:
        """Do one action; the next `observe` (or `act`) waits for its effect.

        Raises ActionRefused (nothing done, the episode goes on) or EnvError.
        """
        require_typable(action)
        with self._with_host_reason():
            # Keys overtake a click that the window manager still holds back.
            if self._pending.limit_s > 0:
                wait_until_settled(self.console, self._pending)
            self.console.forget_changes()
            self.console.perform(action)
        self._pending = settle_limits_for(action.kind)

    def observe(self, settle: SettleLimits | None = None) -> Frame:
        """The screen, after waiting for the last action's effect (or as `settle` says)."""
        wait = self._pending if settle is None else settle
        self._pending = AT_ONCE
        with self._with_host_reason():
            if wait.limit_s > 0:
                wait_until_settled(self.console, wait)
            taken = time.time(), time.monotonic()
            image = self.console.image()
        self._last_frame = Frame.of(image, taken=taken, before=self._last_frame)
        return self._last_frame

    # -- windows ----------------------------------------------------------------------------

    def _windows(self) -> WindowManager:
        windows = self.console.windows
        if windows is None:
            message = f"windows of {self.provider} desktops cannot be asked for"
            raise EnvError(message, kind=ErrorKind.TASK, permanent=True)
        return windows

    def windows(self) -> list[Window]:
        """Managed windows, oldest first."""
        with self._with_host_reason():
            return self._windows().all()

    def wait_for_window(self, text: str, *, timeout_s: float = 10.0, settled: bool = True) -> Window:
        """Wait for a window whose title or class contains `text`, then for it to be drawn.

        Raises EnvError (guest) naming the windows that are there instead.
        """
        deadline = time.monotonic() + timeout_s
        with self._with_host_reason():
            while True:
                found = self._windows().find(text)
                if found is not None:
                    break
                if time.monotonic() > deadline:
                    seen = ", ".join(repr(w.title) for w in self._windows().all()) or "none"
                    message = f"no window {text!r} after {timeout_s:g} s; windows: {seen}"
                    raise EnvError(message, kind=ErrorKind.GUEST)
                self.console.wait_change(0.02)
            if settled:
                wait_until_settled(self.console, SettleLimits(first_change_s=0.1, quiet_s=0.06))
                found = self._wait_active(found)
        return found

    def _wait_active(self, window: Window, limit_s: float = 1.0) -> Window:
        """Keys sent before a new window has the focus are lost; some windows never ask for it."""
        deadline = time.monotonic() + limit_s
        while True:
            now = next((w for w in self._windows().all() if w.window_id == window.window_id), window)
            if now.is_active or time.monotonic() > deadline:
                return now
            self.console.wait_change(0.02)

    def activate_window(self, text: str) -> bool:
        """Raise and focus a window by title or class; False when there is none."""
        with self._with_host_reason():
            return self._windows().activate(text)

    def close_window(self, text: str) -> bool:
        """Ask a window to close, as its close button does; False when there is none."""
        with self._with_host_reason():
            return self._windows().close(text)


class DesktopEnv(Desktop):
    """reset / act / observe / close over one leased desktop."""

    def __init__(self, client: DeskHostClient, lease: Lease) -> None:
        self._client = client
        self.lease = lease
        self._console: Console | None = None
        self._agent: Agent | None = None
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    # -- life -------------------------------------------------------------------------------

    def reset(self) -> ResetReport:
        """A clean desktop, rebuilt by the host when needed (also after it died). Raises EnvError."""
        result = self._client.reset(self.lease.desktop.desktop_id, self.lease.lease_id)
        self._switch_to(result.desktop)
        return result.report

    def prepare(self, key: str, setup: Callable[[], None]) -> bool:
        """The state that `setup` makes on a clean desktop, run only once per key: then it is cloned.

        Every desktop prepared with one key starts from identical bits. Only for providers with
        Capability.SNAPSHOT. True when nothing had to be run. Raises EnvError, and what `setup` raises.
        """
        desktop_id, lease_id = self.lease.desktop.desktop_id, self.lease.lease_id
        prepared = self._client.prepare(desktop_id, lease_id, key)
        self._switch_to(prepared.desktop)
        if not prepared.is_ready:
            setup()
            if self._pending.limit_s > 0:
                wait_until_settled(self.console, self._pending)
            self._disconnect()  # no open connection may be part of the saved state
            self._switch_to(self._client.keep(desktop_id, lease_id).desktop)
        return prepared.is_ready

    def snapshot(self, label: str) -> KeptSnapshot:
        """Save the desktop as it is now and go on. Only for providers with Capability.SNAPSHOT."""
        self._disconnect()  # no open connection may be part of the saved state
        return self._client.snapshot(self.lease.desktop.desktop_id, self.lease.lease_id, label)

    def wake(self, name: str) -> None:
        """Go on where a snapshot was taken, here or on another desktop of this host. Raises EnvError."""
        result = self._client.wake(self.lease.desktop.desktop_id, self.lease.lease_id, name)
        self._switch_to(result.desktop)

    def _switch_to(self, desktop: DesktopInfo) -> None:
        """The lease's desktop is clean; it may be another one, or a new generation, at another place."""
        before, self.lease = self.lease.desktop, self.lease.model_copy(update={"desktop": desktop})
        if (desktop.desktop_id, desktop.generation) != (before.desktop_id, before.generation):
            self._disconnect()
        if self._console is not None:
            self._console.after_reset()
        self._pending = AT_ONCE

    def close(self) -> None:
        """Disconnect and give the lease back. Idempotent; a host that is gone does not matter here."""
        if self._closed:
            return
        self._closed = True
        self._disconnect()
        with contextlib.suppress(EnvError):
            self._client.release(self.lease.lease_id)

    def _disconnect(self) -> None:
        if self._console is not None:
            self._console.close()
        if self._agent is not None:
            self._agent.close()
        self._console = self._agent = None

    # -- connections, made on first use -----------------------------------------------------

    @property
    def provider(self) -> str:
        return self.lease.desktop.provider

    @property
    def console(self) -> Console:
        """Its screen and input."""
        if self._console is None:
            with self._with_host_reason():
                self._console = open_console(self.lease.desktop.endpoints)
        return self._console

    @property
    def agent(self) -> Agent:
        """execute, launch, put, get inside the desktop."""
        if self._agent is None:
            self._agent = open_agent(self.lease.desktop.endpoints)
        return self._agent

    @property
    def home(self) -> str:
        """HOME as programs in the desktop see it."""
        return self.lease.desktop.endpoints.home

    @property
    def size(self) -> tuple[int, int]:
        """Width and height, pixels."""
        return self.console.size

    @contextlib.contextmanager
    def _with_host_reason(self) -> Iterator[None]:
        """Add what the host knows to an error of a lost desktop."""
        try:
            yield
        except EnvError as exc:
            if exc.kind is not ErrorKind.INFRA:
                raise
            self._disconnect()
            reason = self._client.why_dead(self.lease.desktop.desktop_id)
            raise EnvError(f"{exc}. {reason}" if reason else str(exc)) from exc
