"""Mouse and keyboard of a desktop by XTEST, from the host: 2 ms an action, pixel-exact, any Unicode text."""

import contextlib
import time
from collections.abc import Iterator

from Xlib import XK, X
from Xlib.ext import xtest

from training.contracts.types import Action, ActionKind
from workers.desktops.console_contract import MAX_WAIT_S, ActionRefused
from workers.desktops.keysym_names import TEXT_CONTROL, x_name
from workers.desktops.paste_keys import paste_by
from workers.desktops.screen_settling import SettleLimits, host_strain, wait_until_settled
from workers.desktops.x11.clipboard import Clipboard
from workers.desktops.x11.display_connection import X11Display
from workers.desktops.x11.window_control import Windows

REMAP_SETTLE_S = 0.03
"""Programs re-read the keyboard map on a notification; keys sent sooner come out wrong."""
SCROLL_BUTTONS = {(0, -1): 4, (0, 1): 5, (-1, 0): 6, (1, 0): 7}
BUTTONS = {"left": 1, "middle": 2, "right": 3}
DRAG_STEPS = 8
DRAG_STEP_S = 0.008
READ_S, READ_LIMIT_S = 0.15, 30.0
"""On an idle host programs have read their keys when for so long nothing was drawn or computed."""


def keysym_of(name: str) -> int:
    """X keysym of a key name or a single character. Raises ActionRefused."""
    known = x_name(name)
    if len(known) == 1:
        return char_keysym(known)
    keysym = XK.string_to_keysym(name) or XK.string_to_keysym(known)
    if not keysym:
        raise ActionRefused(f"there is no key named {name!r}")
    return keysym


def char_keysym(char: str) -> int:
    """Keysym of a character: Latin-1 has its own, everything else the Unicode range."""
    if char in TEXT_CONTROL:
        return XK.string_to_keysym(TEXT_CONTROL[char])
    code = ord(char)
    if 0x20 <= code <= 0x7E or 0xA0 <= code <= 0xFF:
        return code
    return 0x01000000 | code


class X11Input:
    """Keyboard and pointer of one display."""

    def __init__(self, display: X11Display) -> None:
        self._x = display
        self._display = display.display
        self._keys: dict[int, tuple[int, bool]] = {}
        self._spare: list[int] = []
        """Keycodes that no key has."""
        self._unused: list[int] = []
        """Those of them that make no character yet."""
        self._held: set[int] = set()
        """Keycodes that are down until an action lets go of them."""
        self.reread_keymap()

    def reread_keymap(self) -> None:
        """Learn which keycode makes which keysym; a reset puts the original map back."""
        with self._x.guarded():
            first = self._display.display.info.min_keycode
            count = self._display.display.info.max_keycode - first + 1
            rows = self._display.get_keyboard_mapping(first, count)
        self._keys.clear()
        self._spare = [code for code, row in enumerate(rows, first) if not any(row)]
        self._unused = list(self._spare)
        # Unshifted places win over shifted ones, lower keycodes over higher.
        for column in (0, 1):
            for keycode, row in enumerate(rows, first):
                if column < len(row) and row[column]:
                    self._keys.setdefault(row[column], (keycode, column == 1))

    # -- actions ----------------------------------------------------------------------------

    def perform(self, action: Action) -> None:
        """Do one action; returns when the server has processed it. Raises ActionRefused, EnvError."""
        handlers = {
            ActionKind.CLICK: lambda: self._click(action, 1, action.presses),
            ActionKind.DOUBLE_CLICK: lambda: self._click(action, 1, 2),
            ActionKind.TRIPLE_CLICK: lambda: self._click(action, 1, 3),
            ActionKind.MIDDLE_CLICK: lambda: self._click(action, 2, action.presses),
            ActionKind.RIGHT_CLICK: lambda: self._click(action, 3, action.presses),
            ActionKind.MOUSE_DOWN: lambda: self._button(action, X.ButtonPress),
            ActionKind.MOUSE_UP: lambda: self._button(action, X.ButtonRelease),
            ActionKind.MOVE: lambda: self._move(action.x, action.y),
            ActionKind.DRAG: lambda: self._drag(action),
            ActionKind.SCROLL: lambda: self._scroll(action),
            ActionKind.TYPE: lambda: self._type(action.text or ""),
            ActionKind.PASTE: lambda: self._paste(action.text or ""),
            ActionKind.KEY: lambda: self._chord(action),
            ActionKind.KEY_DOWN: lambda: self._hold(self._keycodes(action.keys)),
            ActionKind.KEY_UP: lambda: self._let_go(self._keycodes(action.keys)),
            ActionKind.WAIT: lambda: time.sleep(min(max(action.seconds, 0.0), MAX_WAIT_S)),
            ActionKind.TERMINATE: lambda: None,
        }
        with self._x.guarded(MAX_WAIT_S + 30.0), self._during(action.modifiers):
            handlers[action.kind]()
            self._display.sync()

    def _fake(self, event: int, detail: int = 0, x: int = 0, y: int = 0) -> None:
        xtest.fake_input(self._display, event, detail, x=x, y=y)

    def _check(self, x: int, y: int) -> None:
        width, height = self._x.size
        if not (0 <= x < width and 0 <= y < height):
            raise ActionRefused(f"({x}, {y}) is off the screen of {width} x {height} pixels")

    def _move(self, x: int | None, y: int | None) -> None:
        if (x is None) != (y is None):
            raise ActionRefused("x and y must be given together")
        if x is None or y is None:
            return
        self._check(x, y)
        self._fake(X.MotionNotify, x=x, y=y)

    def _click(self, action: Action, button: int, times: int) -> None:
        self._move(action.x, action.y)
        for _ in range(times):
            self._fake(X.ButtonPress, button)
            self._fake(X.ButtonRelease, button)

    def _button(self, action: Action, event: int) -> None:
        self._move(action.x, action.y)
        self._fake(event, BUTTONS[action.button])

    def _drag(self, action: Action) -> None:
        """Press, glide, release. Toolkits want to see some motion before they call it a drag."""
        if action.to_x is None or action.to_y is None:
            raise ActionRefused("a drag needs to_x and to_y")
        self._check(action.to_x, action.to_y)
        self._move(action.x, action.y)
        self._display.sync()
        pointer = self._x.root.query_pointer()
        from_x, from_y = pointer.root_x, pointer.root_y
        button = BUTTONS[action.button]
        self._fake(X.ButtonPress, button)
        try:
            for step in range(1, DRAG_STEPS + 1):
                x = from_x + (action.to_x - from_x) * step // DRAG_STEPS
                y = from_y + (action.to_y - from_y) * step // DRAG_STEPS
                self._fake(X.MotionNotify, x=x, y=y)
                self._display.sync()
                time.sleep(DRAG_STEP_S)
        finally:
            self._fake(X.ButtonRelease, button)

    def _scroll(self, action: Action) -> None:
        self._move(action.x, action.y)
        for amount, axis in ((action.scroll_x, 0), (action.scroll_y, 1)):
            sign = (amount > 0) - (amount < 0)
            direction = (sign, 0) if axis == 0 else (0, sign)
            for _ in range(min(abs(amount), 100)):
                button = SCROLL_BUTTONS[direction]
                self._fake(X.ButtonPress, button)
                self._fake(X.ButtonRelease, button)

    # -- keyboard ---------------------------------------------------------------------------

    def _type(self, text: str) -> None:
        """Type text in batches that fit the spare keycodes."""
        for batch in self._batches(text.replace("\r\n", "\n")):
            self._make_typable({char_keysym(char) for char in batch})
            for char in batch:
                self._tap(char_keysym(char))
            self._display.sync()

    def _batches(self, text: str) -> list[str]:
        """Split so that each part needs at most as many new keysyms as there are spare keycodes."""
        batches: list[str] = []
        current, needed = "", set[int]()
        room = max(1, len(self._spare))
        for char in text:
            keysym = char_keysym(char)
            extra = needed | {keysym} if keysym not in self._keys else needed
            if len(extra) > room:
                batches.append(current)
                current, extra = "", {keysym}
            current, needed = current + char, extra
        return [*batches, current] if current else batches

    def _make_typable(self, keysyms: set[int]) -> None:
        """Put keysyms that no key has on spare keycodes."""
        missing = sorted(keysyms - self._keys.keys())
        if not missing:
            return
        if len(missing) > len(self._unused):
            self._recycle_spares()
            missing = sorted(keysyms - self._keys.keys())
        if len(missing) > len(self._unused):
            raise ActionRefused("the keyboard has no spare keycode for this text")
        for keysym in missing:
            keycode = self._unused.pop()
            self._display.change_keyboard_mapping(keycode, [(keysym, keysym)])
            self._keys[keysym] = (keycode, False)
        self._display.sync()
        time.sleep(REMAP_SETTLE_S)

    def _recycle_spares(self) -> None:
        """Free the spare keycodes, after the programs have read the keys that are on their way.

        A program translates a key when it gets to it, by the map of that moment.
        """
        self._display.sync()
        strain = host_strain()
        wait = SettleLimits(first_change_s=2 * READ_S * strain, quiet_s=READ_S * strain, limit_s=READ_LIMIT_S)
        wait_until_settled(self._x, wait)
        self._keys = {k: place for k, place in self._keys.items() if place[0] not in self._spare}
        self._unused = list(self._spare)

    def _tap(self, keysym: int) -> None:
        keycode, shifted = self._keys[keysym]
        codes = [self._shift, keycode] if shifted and self._shift not in self._held else [keycode]
        self._press(codes)
        self._release(codes)

    def _press(self, codes: list[int]) -> None:
        for code in codes:
            self._fake(X.KeyPress, code)

    def _release(self, codes: list[int]) -> None:
        for code in reversed(codes):
            self._fake(X.KeyRelease, code)

    def _hold(self, codes: list[int]) -> None:
        """Keys that stay down; no chord and no modifier lets go of them."""
        self._press([code for code in codes if code not in self._held])
        self._held.update(codes)

    def _let_go(self, codes: list[int]) -> None:
        self._release(codes)
        self._held.difference_update(codes)

    @contextlib.contextmanager
    def _during(self, modifiers: tuple[str, ...]) -> Iterator[None]:
        """With these held, unless they are already."""
        codes = self._keycodes(modifiers) if modifiers else []
        codes = [code for code in codes if code not in self._held]
        self._press(codes)
        try:
            yield
        finally:
            self._release(codes)

    def _chord(self, action: Action) -> None:
        """Press in order, the last key as often as it is counted, release in reverse."""
        *others, last = self._keycodes(action.keys)
        others = [code for code in others if code not in self._held]
        self._press(others)
        try:
            for _ in range(action.presses):
                self._press([last])
                try:
                    self._wait_held(action.seconds)
                finally:
                    self._release([last])
        finally:
            self._release(others)

    def _wait_held(self, seconds: float) -> None:
        """The server repeats a key that is down."""
        if seconds:
            self._display.sync()
            time.sleep(seconds)

    def _paste(self, text: str) -> None:
        window = next((window for window in Windows(self._x).all() if window.is_active), None)
        selection, keys = paste_by(window.window_class if window else "")
        with Clipboard(self._x, text, selection) as clipboard:
            self._chord(Action(kind=ActionKind.KEY, keys=keys))
            self._display.sync()
            clipboard.serve()

    @property
    def _shift(self) -> int:
        return self._keys[XK.string_to_keysym("Shift_L")][0]

    def _keycodes(self, keys: tuple[str, ...]) -> list[int]:
        """In press order. A shifted character brings its own Shift."""
        if not keys:
            raise ActionRefused("a key action needs at least one key")
        keysyms = [keysym_of(name) for name in keys]
        self._make_typable(set(keysyms))
        codes: list[int] = []
        for keysym in keysyms:
            keycode, shifted = self._keys[keysym]
            codes += [self._shift, keycode] if shifted else [keycode]
        return list(dict.fromkeys(codes))

    def forget_held(self) -> None:
        """Every key is up, by another way."""
        self._held.clear()
