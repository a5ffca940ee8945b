"""`Desktop`: acting, seeing and windows over a console, of any provider."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace

from training.contracts.types import Action
from workers.desktops import frame_images
from workers.desktops.agent_contract import Agent
from workers.desktops.console_contract import Console, Window, WindowManager, require_typable
from workers.desktops.contract import EnvError, ErrorKind
from workers.desktops.desktop_texts import NO_TEXTS, NOTHING, DesktopTexts, Reads
from workers.desktops.frame import Frame
from workers.desktops.late_repaints import LateRepaints
from workers.desktops.screen_settling import (
    AT_ONCE,
    DEFAULT,
    SettleLimits,
    settle_limits_for,
    wait_until_settled,
)


class Desktop:
    """act / observe / windows over a console; who makes the desktop is a subclass's matter."""

    reads: Reads = NOTHING
    """Texts that `observe` brings with the screen."""
    _pending: SettleLimits = AT_ONCE
    _last_frame: Frame | None = None
    _late: LateRepaints | None = None

    @property
    def provider(self) -> str:
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
        if self._late is None:
            self._late = LateRepaints(lambda: self.agent.waiting())
        with self._with_host_reason():
            unsettled = self._late.wait(self.console, wait)
            taken = time.time(), time.monotonic()
            image = self.console.image()
        frame = Frame.of(image, taken=taken, before=self._last_frame)
        texts = DesktopTexts.read(self.reads, self.agent) if self.reads else NO_TEXTS
        self._last_frame = frame = replace(frame, unsettled=unsettled, texts=texts)
        return frame

    def has_changed(self) -> bool:
        """Whether the screen shows something else than the last frame; nothing drawn costs nothing."""
        last = self._last_frame
        if last is None or self._late is None:
            return False
        with self._with_host_reason():
            is_drawn = self.console.wait_change(0.0)
            is_changed = is_drawn and frame_images.digest(self.console.image()) != last.raw_digest
        self._pending = DEFAULT if is_changed else self._pending
        self._late.look_later(is_changed=is_changed)
        return is_changed

    def wait_for_late(self) -> None:
        """Until programs that were about to go on by themselves have, at most two seconds."""
        if self._late is not None and (left_s := self._late.foreseen_s()) > 0:
            with self._with_host_reason():
                self.console.wait_change(left_s)
            self._pending = DEFAULT

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
