"""Text that a program is given when it pastes."""

import contextlib
import select
import time
from types import TracebackType
from typing import Any, Self

import Xlib.display
from Xlib import X, Xatom
from Xlib.protocol import event

from workers.desktops.x11.display_connection import X11Display

FIRST_LIMIT_S = 2.0
"""A busy program may need this long to request the text."""
QUIET_S = 0.15
"""A program that requests nothing for this long has the text: it first requests the forms that there are."""


class Clipboard:
    """The owner of a selection for the time of one paste, on a connection of its own."""

    def __init__(self, x: X11Display, text: str, selection: str) -> None:
        self._x = x
        self._selection = selection
        self._data = text.encode("utf-8", "replace")

    def __enter__(self) -> Self:
        with self._x.guarded():
            self._display = Xlib.display.Display(self._x.socket_path)
            self._window = self._display.screen().root.create_window(-1, -1, 1, 1, 0, X.CopyFromParent)
            atom = self._display.intern_atom
            self._targets = atom("TARGETS")
            self._forms = [atom("UTF8_STRING"), atom("text/plain;charset=utf-8"), atom("TEXT"), Xatom.STRING]
            self._window.set_selection_owner(atom(self._selection), X.CurrentTime)
            self._display.sync()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError, Xlib.error.ConnectionClosedError):
            self._display.close()

    def serve(self) -> None:
        """Answer until the program has the text, or none requests it."""
        wait_s = FIRST_LIMIT_S
        deadline = time.monotonic() + 2 * FIRST_LIMIT_S
        with self._x.guarded(3 * FIRST_LIMIT_S):
            while time.monotonic() < deadline and self._has_request(wait_s):
                while self._display.pending_events():
                    found = self._display.next_event()
                    if found.type == X.SelectionRequest:
                        wait_s = QUIET_S if self._answer(found) else wait_s

    def _has_request(self, wait_s: float) -> bool:
        self._display.flush()
        return bool(
            self._display.pending_events() or select.select([self._display.fileno()], [], [], wait_s)[0]
        )

    def _answer(self, request: Any) -> bool:
        """Put what was requested where the request says; True once that was the text."""
        place, is_text = request.property or request.target, request.target in self._forms
        if request.target == self._targets:
            request.requestor.change_property(place, Xatom.ATOM, 32, [self._targets, *self._forms])
        elif is_text:
            request.requestor.change_property(place, request.target, 8, self._data)
        else:
            place = X.NONE
        request.requestor.send_event(
            event.SelectionNotify(
                time=request.time,
                requestor=request.requestor,
                selection=request.selection,
                target=request.target,
                property=place,
            )
        )
        return is_text
