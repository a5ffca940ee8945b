"""Remove the windows that programs left on a display: most go by themselves, some are meant to stay."""

import contextlib
import time

import Xlib.error
from Xlib import X
from Xlib.xobject.drawable import Window

from workers.desktops.contract import NotClean
from workers.desktops.x11.display_connection import X11Display

VANISH_LIMIT_S = 2.0
RETAINED_AFTER_S = 0.4
"""Windows that are there this long after their program's end were made to outlive it."""


def remove_extra_windows(x: X11Display, known: frozenset[int]) -> None:
    """Wait for windows outside `known` (a fresh display's) to go, killing their owners if need be.

    Raises NotClean when some stay.
    """
    started = time.monotonic()
    protected = {_owner(x, window_id) for window_id in known}
    pause = 0.002
    while extra := _extra_windows(x, known, protected):
        waited = time.monotonic() - started
        if waited > VANISH_LIMIT_S:
            raise NotClean(f"{len(extra)} windows are still there")
        if waited > RETAINED_AFTER_S:
            _kill_owners(x, extra, protected)
        time.sleep(pause)
        pause = min(pause * 1.5, 0.03)


def _owner(x: X11Display, window_id: int) -> int:
    """The client that made a window: the high bits of every id it makes. 0 is the X server itself."""
    return window_id & ~x.display.display.info.resource_id_mask


def _extra_windows(x: X11Display, known: frozenset[int], protected: set[int]) -> list:
    """Top-level windows that a fresh display has not.

    Not counted: Xvnc's own clipboard helper (owner 0), and helpers that the window manager made after
    the display was called fresh: they are invisible, and they hold no program's window.
    """
    extra = []
    for window in x.root.query_tree().children:
        owner = _owner(x, window.id)
        if window.id in known or owner == 0:
            continue
        if owner not in protected or _is_frame_or_visible(x, window, protected):
            extra.append(window)
    return extra


def _is_frame_or_visible(x: X11Display, window: Window, protected: set[int]) -> bool:
    """Whether a window of the window manager matters; False when it has gone meanwhile."""
    width, height = x.screen.width_in_pixels, x.screen.height_in_pixels  # as it was at first
    try:
        if _has_foreign_child(x, window, protected):
            return True
        place = window.get_geometry()
        reaches_in = place.x + place.width > 0 and place.y + place.height > 0
        is_on_screen = place.x < width and place.y < height and reaches_in
        return is_on_screen and window.get_attributes().map_state == X.IsViewable
    except Xlib.error.XError:
        return False


def _has_foreign_child(x: X11Display, window: Window, protected: set[int]) -> bool:
    children = window.query_tree().children
    return any(_owner(x, c.id) not in protected or _has_foreign_child(x, c, protected) for c in children)


def _kill_owners(x: X11Display, windows: list[Window], protected: set[int]) -> None:
    """Kill the clients behind windows, never the window manager whose frames hold them."""
    for window in windows:
        if _owner(x, window.id) not in protected:
            window.kill_client()
            continue
        with contextlib.suppress(Xlib.error.XError):  # the frame went away by itself
            _kill_owners(x, window.query_tree().children, protected)
    x.display.sync()
