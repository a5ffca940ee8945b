"""Remember how a fresh X display looks, bring a used one back to that, and prove it.

Killing the programs removes their windows and selections; this takes care of what outlives a client:
pressed keys, locked modifiers, keyboard map, pointer place, root colour and properties, windows kept
by RetainPermanent, a clipboard that the VNC side owns, a changed screen size.
"""

import hashlib
import time
from dataclasses import dataclass, field
from typing import Any

from Xlib import X, Xatom
from Xlib.ext import xtest
from Xlib.protocol import event

from workers.desktops.contract import NotClean
from workers.desktops.x11.display_connection import X11Display
from workers.desktops.x11.held_input import held, release_held
from workers.desktops.x11.leftover_windows import VANISH_LIMIT_S, remove_extra_windows

SELECTIONS = ("PRIMARY", "SECONDARY", "CLIPBOARD")
# The window manager rewrites these by itself; their values after a reset are checked below, not set.
STALE = "_NET_ACTIVE_WINDOW"
"""openbox leaves the last window's id here when nothing is left to focus; we write the zero."""
MANAGED_PREFIXES = ("_NET_", "_OB_", "_OPENBOX_", "_MOTIF_", "WM_")


@dataclass
class Baseline:
    """A fresh display: what must be there again after a reset."""

    size: tuple[int, int]
    background: int
    """Root colour, 0xRRGGBB."""
    keymap: list[list[int]] = field(default_factory=list)
    picture: bytes = b""
    """Digest of its pixels."""
    properties: dict[str, tuple[str, int, bytes]] = field(default_factory=dict)
    """name -> (type, format, raw value)"""
    controls: dict[str, str] = field(default_factory=dict)
    """Settings of the server that outlive clients and that a program has no business with."""
    windows: frozenset[int] = frozenset()


def take_baseline(x: X11Display, background: str) -> Baseline:
    """Paint the fresh display, park the pointer, and remember everything."""
    colour = int(background.lstrip("#"), 16)
    baseline = Baseline(size=x.size, background=colour)
    with x.guarded():
        _wait_for_window_manager(x)
        baseline.keymap = _keymap(x)
        _paint(x, colour)
        _park_pointer(x, baseline.size)
        baseline.properties = _properties(x)
        baseline.picture = _picture(x, baseline.size)
        baseline.controls = _controls(x)
        baseline.windows = frozenset(w.id for w in x.root.query_tree().children)
    return baseline


def restore(x: X11Display, baseline: Baseline, vnc: str = "") -> None:
    """Undo what outlives clients, then verify. Raises NotClean with what is left.

    `vnc`: the socket of its VNC server, "" = it has none.
    """
    release_held(x, vnc)
    with x.guarded():
        _restore_keymap(x, baseline)
        for name in SELECTIONS:
            _clear_selection(x, name)
        remove_extra_windows(x, baseline.windows)
        _restore_properties(x, baseline)
        _paint(x, baseline.background)
        _park_pointer(x, baseline.size)
        _verify(x, baseline)


def _wait_for_window_manager(x: X11Display, limit_s: float = 10.0) -> None:
    """Return once the window manager handles events: it has set all properties of its start by then.

    It announces itself before that, so it is asked, by EWMH, for the frame that a window would get. What it
    is sent during its start is lost: it is asked again.
    """
    answer = x.display.intern_atom("_NET_FRAME_EXTENTS")
    window = x.root.create_window(-10, -10, 1, 1, 0, X.CopyFromParent)
    request = event.ClientMessage(
        window=window, client_type=x.display.intern_atom("_NET_REQUEST_FRAME_EXTENTS"), data=(32, [0] * 5)
    )
    deadline = time.monotonic() + limit_s
    try:
        while window.get_full_property(answer, Xatom.CARDINAL) is None:
            if time.monotonic() > deadline:
                raise NotClean("the window manager does not answer")
            x.root.send_event(request, event_mask=X.SubstructureRedirectMask | X.SubstructureNotifyMask)
            time.sleep(0.02)
    finally:
        window.destroy()
        x.display.sync()


def _keymap(x: X11Display) -> list[list[int]]:
    info = x.display.display.info
    rows = x.display.get_keyboard_mapping(info.min_keycode, info.max_keycode - info.min_keycode + 1)
    return [list(row) for row in rows]


def _restore_keymap(x: X11Display, baseline: Baseline) -> None:
    """Row by row, only where it differs: writing the whole map back makes the server widen it.

    Only keycodes that were spare can be put back; typing Unicode touches no others.
    """
    first = x.display.display.info.min_keycode
    for offset, (now, then) in enumerate(zip(_keymap(x), baseline.keymap, strict=True)):
        width = max(len(now), len(then))
        if _padded(now, width) == _padded(then, width):
            continue
        if any(then):
            raise NotClean("the keyboard layout was changed")  # more than the map belongs to it
        x.display.change_keyboard_mapping(first + offset, [tuple(then)])
    x.display.sync()


def _padded(row: list[int], width: int) -> list[int]:
    return row + [0] * (width - len(row))


def _clear_selection(x: X11Display, name: str) -> None:
    """Take the selection and drop it, so that what was copied before cannot be pasted."""
    atom = x.display.intern_atom(name)
    if x.display.get_selection_owner(atom) == X.NONE:
        return
    owner = x.root.create_window(-10, -10, 1, 1, 0, X.CopyFromParent)
    owner.set_selection_owner(atom, X.CurrentTime)
    owner.destroy()
    x.display.sync()


def _properties(x: X11Display) -> dict[str, tuple[str, int, bytes]]:
    found = {}
    for atom in x.root.list_properties():
        value = x.root.get_full_property(atom, X.AnyPropertyType)
        if value is not None:
            raw = value.value if isinstance(value.value, bytes) else bytes(value.value.tobytes())
            found[x.atom_name(atom)] = (x.atom_name(value.property_type), value.format, raw)
    return found


def _restore_properties(x: X11Display, baseline: Baseline) -> None:
    """Delete what is new and put back what was changed, except what the window manager keeps."""
    now = _properties(x)
    for name in now.keys() - baseline.properties.keys():
        if not name.startswith(MANAGED_PREFIXES):
            x.root.delete_property(x.display.intern_atom(name))
    for name, (kind, width, raw) in baseline.properties.items():
        if now.get(name) != (kind, width, raw) and not name.startswith(MANAGED_PREFIXES):
            x.root.change_property(x.display.intern_atom(name), x.display.intern_atom(kind), width, raw)
    x.display.sync()


def _paint(x: X11Display, colour: int) -> None:
    x.root.change_attributes(background_pixel=colour)
    x.root.clear_area()
    x.display.sync()


def _park_pointer(x: X11Display, size: tuple[int, int]) -> None:
    """Lower right corner: covers nothing, and no window appears there to be hovered."""
    width, height = size
    xtest.fake_input(x.display, X.MotionNotify, x=width - 4, y=height - 4)
    x.display.sync()


def _controls(x: X11Display) -> dict[str, str]:
    display = x.display
    keyboard = {**display.get_keyboard_control()._data, "led_mask": 0}  # locks have been released already
    found = {
        "pointer buttons": display.get_pointer_mapping(),
        "modifiers": [sorted(row) for row in display.get_modifier_mapping()],
        "keyboard": keyboard,
        "pointer speed": display.get_pointer_control()._data,
        "screen saver": display.get_screen_saver()._data,
        "font path": display.get_font_path(),
        "hosts": display.list_hosts()._data,
    }
    return {name: _without_number(value) for name, value in found.items()}


def _without_number(value: Any) -> str:
    """As text, but for the number that each answer has."""
    return str(
        {k: v for k, v in value.items() if k != "sequence_number"} if isinstance(value, dict) else value
    )


def _picture(x: X11Display, size: tuple[int, int]) -> bytes:
    return hashlib.sha256(x.pixels(size)).digest()


def _verify(x: X11Display, baseline: Baseline) -> None:
    """Compare with the baseline; the window manager gets a moment to notice closed windows."""
    geometry = x.root.get_geometry()
    if (geometry.width, geometry.height) != baseline.size:
        raise NotClean(f"the screen was resized to {geometry.width} x {geometry.height}")
    deadline = time.monotonic() + VANISH_LIMIT_S
    while wrong := _differences(_properties(x), baseline.properties):
        if time.monotonic() > deadline:
            raise NotClean(f"root properties differ: {', '.join(wrong[:5])}")
        time.sleep(0.005)
    x.root.change_property(x.display.intern_atom(STALE), Xatom.WINDOW, 32, [X.NONE])
    if down := held(x):
        raise NotClean(down)
    now = _controls(x)
    if changed := [name for name, value in baseline.controls.items() if now[name] != value]:
        raise NotClean(f"a program changed the X server's {', '.join(changed)}")
    while _picture(x, baseline.size) != baseline.picture:
        if time.monotonic() > deadline:
            raise NotClean("the screen does not look like a fresh one")
        time.sleep(0.01)


def _differences(now: dict, then: dict) -> list[str]:
    """Names whose values differ; absent, an empty list and a zero (no active window) mean the same."""

    def meaning(found: dict, name: str) -> tuple[str, bytes]:
        kind, _width, raw = found.get(name, ("", 0, b""))
        return (kind, raw) if raw.strip(b"\0") else ("", b"")

    names = (now.keys() | then.keys()) - {STALE}
    return sorted(name for name in names if meaning(now, name) != meaning(then, name))
