"""The windows of a virtual machine's desktop for its host, which cannot reach the display itself.

Asks the window manager by its properties; the connection is made on first use and kept.
"""

import contextlib
import signal
from collections.abc import Iterator
from typing import Any

import Xlib.display
import Xlib.error
from Xlib import X, Xatom
from Xlib.protocol import event

from workers.guest.http_server import HttpError, Request, Response, Route, json_response

PAGER = 2
"""Requests of a pager are obeyed without focus-stealing prevention."""
STATIC_GRAVITY = 10
HAS_BOX = 0b1111 << 8
FROM_PAGER = PAGER << 12
ANSWER_LIMIT_S = 8.0
"""A program may grab the whole display; the agent must answer all the same."""
LONGEST_WAIT_S = 600.0
LOST = (Xlib.error.ConnectionClosedError, Xlib.error.DisplayError, OSError)


class WindowRoutes:
    """Routes over one display."""

    def __init__(self, display_name: str, limit_s: float = ANSWER_LIMIT_S) -> None:
        self._name = display_name
        self._limit_s = limit_s
        self._open: Xlib.display.Display | None = None

    def routes(self) -> dict[tuple[str, str], Route]:
        return {
            ("GET", "/windows"): self.list_windows,
            ("POST", "/windows/activate"): self.activate,
            ("POST", "/windows/close"): self.close,
            ("POST", "/windows/move"): self.move,
        }

    async def list_windows(self, request: Request) -> Response:
        """Managed windows, oldest first: {"windows": [{window_id, title, window_class, x, y, ...}]}."""
        return json_response({"windows": self.described(self.wait_s(request))})

    def wait_s(self, request: Request) -> float:
        """How long the display may take: a host that emulates us knows better, and says so as `wait_s`."""
        try:
            wanted = min(float(request.query.get("wait_s", 0.0)), LONGEST_WAIT_S)
        except ValueError as exc:
            raise HttpError(400, "wait_s: not a number of seconds") from exc
        return max(self._limit_s, wanted) if self._limit_s else 0.0

    def described(self, limit_s: float | None = None) -> list[dict[str, Any]]:
        """Managed windows, oldest first. Raises HttpError."""
        try:
            with limited(self._limit_s if limit_s is None else limit_s):
                active = self._cardinals("_NET_ACTIVE_WINDOW")
                found = [
                    self._describe(number, number in active) for number in self._cardinals("_NET_CLIENT_LIST")
                ]
        except LOST as exc:
            self._open = None
            raise HttpError(500, f"the display does not answer: {exc}") from exc
        return [window for window in found if window]

    def find(self, text: str, *, strict: bool = False, by_class: bool = False) -> dict[str, Any] | None:
        """First window whose title (or class) contains the text in any case, or with `strict` is the text."""
        key, wanted = ("window_class" if by_class else "title"), text.lower()
        for window in self.described():
            if window[key] == text if strict else wanted in window[key].lower():
                return window
        return None

    async def activate(self, request: Request) -> Response:
        """Raise and focus {"window_id"}."""
        return self.activate_one(int(request.json()["window_id"]), self.wait_s(request))

    def activate_one(self, number: int, limit_s: float | None = None) -> Response:
        return self._send(number, "_NET_ACTIVE_WINDOW", [PAGER, X.CurrentTime, 0, 0, 0], limit_s)

    async def close(self, request: Request) -> Response:
        """Ask {"window_id"} to close, as its close button does."""
        return self.close_one(int(request.json()["window_id"]), self.wait_s(request))

    def close_one(self, number: int, limit_s: float | None = None) -> Response:
        return self._send(number, "_NET_CLOSE_WINDOW", [X.CurrentTime, PAGER, 0, 0, 0], limit_s)

    async def move(self, request: Request) -> Response:
        """Place the content of {"window_id"} at {"box": [x, y, width, height]}."""
        box = [int(value) for value in request.json()["box"]]
        if len(box) != 4:
            raise HttpError(400, "box: x, y, width and height are needed")
        flags = STATIC_GRAVITY | HAS_BOX | FROM_PAGER
        number, limit_s = int(request.json()["window_id"]), self.wait_s(request)
        return self._send(number, "_NET_MOVERESIZE_WINDOW", [flags, *box], limit_s)

    @property
    def _display(self) -> Xlib.display.Display:
        if self._open is None:
            self._open = Xlib.display.Display(self._name)
            # A window may close while we ask about it.
            self._open.set_error_handler(lambda *_: None)
        return self._open

    def _send(self, number: int, message: str, data: list[int], limit_s: float | None) -> Response:
        try:
            with limited(self._limit_s if limit_s is None else limit_s):
                display = self._display
                order = event.ClientMessage(
                    window=number, client_type=display.intern_atom(message), data=(32, data)
                )
                mask = X.SubstructureRedirectMask | X.SubstructureNotifyMask
                display.screen().root.send_event(order, event_mask=mask)
                display.sync()
        except LOST as exc:
            self._open = None
            raise HttpError(500, f"the display does not answer: {exc}") from exc
        return json_response({"status": "success"})

    def _cardinals(self, name: str) -> list[int]:
        root = self._display.screen().root
        value = root.get_full_property(self._display.intern_atom(name), Xatom.WINDOW)
        return [int(number) for number in value.value] if value is not None else []

    def _describe(self, number: int, is_active: bool) -> dict[str, Any] | None:
        """None when the window closed while we asked."""
        display = self._display
        window = display.create_resource_object("window", number)
        try:
            modern = window.get_full_property(display.intern_atom("_NET_WM_NAME"), X.AnyPropertyType)
            plain = "" if modern is not None else window.get_wm_name() or ""
            wm_class = window.get_wm_class() or ("", "")
            geometry = window.get_geometry()
            place = window.translate_coords(display.screen().root, 0, 0)
        except Xlib.error.XError:
            return None
        return {
            "window_id": number,
            "title": plain if modern is None else modern.value.decode("utf-8", "replace"),
            "window_class": ".".join(wm_class),
            "x": -place.x,
            "y": -place.y,
            "width": geometry.width,
            "height": geometry.height,
            "is_active": is_active,
        }


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Inside the block a call that blocks for longer raises TimeoutError. For the main thread only."""

    def ring(*_: object) -> None:
        raise TimeoutError(f"no answer after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
