"""Pointer and keyboard of the display that DISPLAY names, by XTEST; text in any script."""

import functools
import time

import Xlib.display
import Xlib.ext
from Xlib import XK, X
from Xlib.ext import xtest

REMAP_SETTLE_S = 0.03
"""Programs re-read the keyboard map on a notification; keys sent sooner come out wrong."""
REUSE_SETTLE_S = 1.0
"""Before a key gets another character than one that was just typed: programs translate a key when they get
to it, by the map of that moment."""
UNICODE_KEYSYMS = range(0x01000000, 0x01110000)
LATIN_1 = range(0xA0, 0x100)
TEXT_CONTROL = {"\n": "Return", "\r": "Return", "\t": "Tab", "\b": "BackSpace"}


def keysym_of_char(char: str) -> int:
    """X keysym of one character."""
    if char in TEXT_CONTROL:
        return int(XK.string_to_keysym(TEXT_CONTROL[char]))
    code = ord(char)
    latin_1 = 0x20 <= code <= 0x7E or 0xA0 <= code <= 0xFF
    return code if latin_1 else UNICODE_KEYSYMS.start + code


def open_display(*extensions: str) -> Xlib.display.Display:
    """A connection that knows only these extensions: asking for all takes half a second under emulation."""
    known = Xlib.ext.__extensions__
    Xlib.ext.__extensions__ = [row for row in known if row[0] in extensions]
    try:
        return Xlib.display.Display()
    finally:
        Xlib.ext.__extensions__ = known


class Input:
    """One connection; the keyboard map is read with the first key."""

    def __init__(self) -> None:
        self.display = open_display("XTEST")
        self.screen = self.display.screen()
        self._keys: dict[int, tuple[int, bool]] = {}
        """keysym -> (keycode, whether Shift is needed)"""
        self._spare: list[int] = []
        """Keycodes without a meaning."""
        self._borrowed: list[int] = []
        """Keycodes that carry a character which an earlier program typed."""

    def _read_keymap(self) -> None:
        if self._keys:
            return
        info = self.display.display.info
        rows = self.display.get_keyboard_mapping(info.min_keycode, info.max_keycode - info.min_keycode + 1)
        numbered = list(enumerate(rows, info.min_keycode))
        for column in (0, 1):
            for keycode, row in numbered:
                if column < len(row) and row[column]:
                    self._keys.setdefault(row[column], (keycode, column == 1))
        self._spare = [keycode for keycode, row in numbered if not any(row)]
        for keycode, row in numbered:
            meanings = {keysym for keysym in row if keysym}
            # No key of the layout has such a character as its only one.
            if len(meanings) == 1 and (min(meanings) in UNICODE_KEYSYMS or min(meanings) in LATIN_1):
                self._borrowed.append(keycode)

    # -- pointer ----------------------------------------------------------------------------

    def size(self) -> tuple[int, int]:
        return self.screen.width_in_pixels, self.screen.height_in_pixels

    def position(self) -> tuple[int, int]:
        pointer = self.screen.root.query_pointer()
        return pointer.root_x, pointer.root_y

    def move(self, x: float, y: float) -> None:
        width, height = self.size()
        place = {"x": min(max(round(x), 0), width - 1), "y": min(max(round(y), 0), height - 1)}
        xtest.fake_input(self.display, X.MotionNotify, **place)
        self.display.sync()

    def button(self, number: int, *, down: bool) -> None:
        xtest.fake_input(self.display, X.ButtonPress if down else X.ButtonRelease, number)
        self.display.sync()

    # -- keyboard ---------------------------------------------------------------------------

    def key(self, keysym: int, *, down: bool) -> None:
        """Press or release the key of a keysym, Shift included where it is needed."""
        self._read_keymap()
        self._make_typable([keysym])
        keycode, shifted = self._keys[keysym]
        if shifted and down:
            xtest.fake_input(self.display, X.KeyPress, self._shift)
        xtest.fake_input(self.display, X.KeyPress if down else X.KeyRelease, keycode)
        if shifted and not down:
            xtest.fake_input(self.display, X.KeyRelease, self._shift)
        self.display.sync()

    def type(self, text: str, interval_s: float = 0.0) -> None:
        """Type text in parts that fit the free keycodes."""
        self._read_keymap()
        for part in self._parts(text.replace("\r\n", "\n")):
            keysyms = [keysym_of_char(char) for char in part]
            self._make_typable(keysyms)
            for keysym in keysyms:
                self.key(keysym, down=True)
                self.key(keysym, down=False)
                if interval_s:
                    time.sleep(interval_s)

    @functools.cached_property
    def _shift(self) -> int:
        return self._keys[int(XK.string_to_keysym("Shift_L"))][0]

    def _parts(self, text: str) -> list[str]:
        room = max(1, len(self._spare) + len(self._borrowed))
        parts: list[str] = []
        current, new = "", set[int]()
        for char in text:
            keysym = keysym_of_char(char)
            extra = new | {keysym} if keysym not in self._keys else new
            if len(extra) > room:
                parts.append(current)
                current, extra = "", {keysym}
            current, new = current + char, extra
        return [*parts, current] if current else parts

    def _make_typable(self, keysyms: list[int]) -> None:
        """Put keysyms that no key has on free keycodes, then on those that carry something unneeded now."""
        missing = [keysym for keysym in dict.fromkeys(keysyms) if keysym not in self._keys]
        if not missing:
            return
        if len(missing) > len(self._spare):
            time.sleep(REUSE_SETTLE_S)
        for keysym in missing:
            if self._spare:
                keycode = self._spare.pop()
            else:
                keycode = self._take_borrowed(set(keysyms))
            self.display.change_keyboard_mapping(keycode, [(keysym, keysym)])
            self._keys[keysym] = (keycode, False)
            self._borrowed.append(keycode)
        self.display.sync()
        time.sleep(REMAP_SETTLE_S)

    def _take_borrowed(self, needed: set[int]) -> int:
        """A keycode whose character this text does not need. Raises ValueError when there is none."""
        in_use = {keycode: keysym for keysym, (keycode, _) in self._keys.items()}
        for keycode in self._borrowed:
            if in_use.get(keycode) not in needed:
                self._borrowed.remove(keycode)
                self._keys.pop(in_use.get(keycode, 0), None)
                return keycode
        raise ValueError("the keyboard has no free key for this character")


@functools.cache
def shared_input() -> Input:
    """The connection of this program, made on first use."""
    return Input()
