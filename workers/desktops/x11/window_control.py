"""The windows of a desktop, by the window manager's properties: 1 ms, no program inside needed."""

import Xlib.error
from Xlib import X, Xatom
from Xlib.protocol import event

from workers.desktops.console_contract import Window, find_window
from workers.desktops.x11.display_connection import X11Display

SOURCE_PAGER = 2
"""_NET messages from a pager are obeyed without focus-stealing prevention."""
STATIC_GRAVITY = 10
HAS_BOX = 0b1111 << 8
FROM_PAGER = SOURCE_PAGER << 12


class Windows:
    """Queries and requests over the window manager."""

    def __init__(self, x: X11Display) -> None:
        self._x = x
        self._display = x.display

    def all(self) -> list[Window]:
        with self._x.guarded():
            active = self._cardinals("_NET_ACTIVE_WINDOW", Xatom.WINDOW)
            found = [
                self._describe(w, w in active) for w in self._cardinals("_NET_CLIENT_LIST", Xatom.WINDOW)
            ]
        return [window for window in found if window is not None]

    def find(self, text: str) -> Window | None:
        """First window whose title or class contains the text, in any case."""
        return find_window(self.all(), text)

    def activate(self, text: str) -> bool:
        return self._request(text, "_NET_ACTIVE_WINDOW", [SOURCE_PAGER, X.CurrentTime, 0, 0, 0])

    def close(self, text: str) -> bool:
        return self._request(text, "_NET_CLOSE_WINDOW", [X.CurrentTime, SOURCE_PAGER, 0, 0, 0])

    def move(self, window_id: int, box: tuple[int, int, int, int]) -> None:
        self._send(window_id, "_NET_MOVERESIZE_WINDOW", [STATIC_GRAVITY | HAS_BOX | FROM_PAGER, *box])

    def _request(self, text: str, message: str, data: list[int]) -> bool:
        window = self.find(text)
        if window is None:
            return False
        self._send(window.window_id, message, data)
        return True

    def _send(self, window_id: int, message: str, data: list[int]) -> None:
        with self._x.guarded():
            request = event.ClientMessage(
                window=window_id, client_type=self._display.get_atom(message), data=(32, data)
            )
            mask = X.SubstructureRedirectMask | X.SubstructureNotifyMask
            self._x.root.send_event(request, event_mask=mask)
            self._display.sync()

    def _cardinals(self, name: str, kind: int) -> list[int]:
        value = self._x.root.get_full_property(self._display.get_atom(name), kind)
        return list(value.value) if value is not None else []

    def _describe(self, window_id: int, is_active: bool) -> Window | None:
        """None when the window closed while we asked."""
        window = self._display.create_resource_object("window", window_id)
        try:
            modern = window.get_full_property(self._display.get_atom("_NET_WM_NAME"), X.AnyPropertyType)
            plain = "" if modern is not None else window.get_wm_name() or ""
            wm_class = window.get_wm_class() or ("", "")
            geometry = window.get_geometry()
            place = window.translate_coords(self._x.root, 0, 0)
        except Xlib.error.XError:
            return None
        return Window(
            window_id=window_id,
            title=plain if modern is None else modern.value.decode("utf-8", "replace"),
            window_class=".".join(wm_class),
            x=-place.x,
            y=-place.y,
            width=geometry.width,
            height=geometry.height,
            is_active=is_active,
        )
