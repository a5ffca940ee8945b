"""Mouse and keyboard of a machine through QEMU's monitor: works in every guest, without a program inside."""

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

from training.contracts.types import Action, ActionKind
from workers.desktops.console_contract import MAX_WAIT_S, ActionRefused
from workers.desktops.qemu.guest_input_queues import GuestQueues
from workers.desktops.qemu.keyboard_layout import ALL_KEYS, SHIFT, keys_of_char, keys_of_chord
from workers.desktops.qemu.monitor_client import QmpClient

ABS_MAX = 0x7FFF
"""Range of the tablet's axes."""
MAX_SCROLL = 100
DRAG_STEPS = 8
DRAG_STEP_S = 0.03
"""An emulated toolkit takes this long to see one motion."""
BETWEEN_CLICKS_S = 0.03
BUTTONS = ("left", "middle", "right", "side", "extra")
RELEASED_AT_ONCE = 10


class QmpInput:
    """Keyboard and pointer of one machine."""

    def __init__(
        self,
        client: QmpClient,
        size: Callable[[], tuple[int, int]],
        type_rest: Callable[[str], None] | None,
        ask: Callable[[], None] | None = None,
        copy: Callable[[str], tuple[str, ...]] | None = None,
    ) -> None:
        self._client = client
        self._queues = GuestQueues(client, ask)
        self._size = size
        self._type_rest = type_rest
        """Types what the keyboard does not have, from inside the guest; None: it cannot be typed."""
        self._copy = copy
        """Puts text into the guest's clipboard and says the keys that paste it; None: it has no way."""
        self._held: set[str] = set()
        """Keys that are down until an action lets go of them."""

    def perform(self, action: Action) -> None:
        """Do one action; returns when the guest has taken it. Raises ActionRefused, EnvError."""
        handlers = {
            ActionKind.CLICK: lambda: self._click(action, "left", action.presses),
            ActionKind.DOUBLE_CLICK: lambda: self._click(action, "left", 2),
            ActionKind.TRIPLE_CLICK: lambda: self._click(action, "left", 3),
            ActionKind.MIDDLE_CLICK: lambda: self._click(action, "middle", action.presses),
            ActionKind.RIGHT_CLICK: lambda: self._click(action, "right", action.presses),
            ActionKind.MOUSE_DOWN: lambda: self._button(action, True),
            ActionKind.MOUSE_UP: lambda: self._button(action, False),
            ActionKind.MOVE: lambda: self._move(action.x, action.y),
            ActionKind.DRAG: lambda: self._drag(action),
            ActionKind.SCROLL: lambda: self._scroll(action),
            ActionKind.TYPE: lambda: self._type(action.text or ""),
            ActionKind.PASTE: lambda: self._paste(action.text or ""),
            ActionKind.KEY: lambda: self._keys(action),
            ActionKind.KEY_DOWN: lambda: self._hold(keys_of_chord(action.keys)),
            ActionKind.KEY_UP: lambda: self._let_go(keys_of_chord(action.keys)),
            ActionKind.WAIT: lambda: time.sleep(min(max(action.seconds, 0.0), MAX_WAIT_S)),
            ActionKind.TERMINATE: lambda: None,
        }
        with self._during(action.modifiers):
            handlers[action.kind]()
        self._queues.wait_taken()

    def let_go(self) -> None:
        """Every key and button up: the guest takes no notice of those that are."""
        ups = [*(key(name, False) for name in ALL_KEYS), *(button(name, False) for name in BUTTONS)]
        for start in range(0, len(ups), RELEASED_AT_ONCE):
            self._send(*ups[start : start + RELEASED_AT_ONCE])
        self._held.clear()
        self._queues.wait_taken()

    def _send(self, *events: dict[str, Any]) -> None:
        """Events of one command reach the guest together, with one more that closes them."""
        self._queues.make_room(len(events) + 1)
        self._client.execute("input-send-event", events=list(events))

    # -- pointer ----------------------------------------------------------------------------

    def _move(self, x: int | None, y: int | None) -> None:
        if (x is None) != (y is None):
            raise ActionRefused("x and y must be given together")
        if x is None or y is None:
            return
        width, height = self._size()
        if not (0 <= x < width and 0 <= y < height):
            raise ActionRefused(f"({x}, {y}) is off the screen of {width} x {height} pixels")
        self._send(axis("x", x, width), axis("y", y, height))

    def _click(self, action: Action, which: str, times: int) -> None:
        self._move(action.x, action.y)
        for number in range(times):
            if number:
                time.sleep(BETWEEN_CLICKS_S)
            self._send(button(which, True))
            self._send(button(which, False))

    def _button(self, action: Action, down: bool) -> None:
        self._move(action.x, action.y)
        self._send(button(action.button, down))

    def _drag(self, action: Action) -> None:
        """Press, glide, release. Toolkits want to see some motion before they call it a drag."""
        if action.to_x is None or action.to_y is None:
            raise ActionRefused("a drag needs to_x and to_y")
        if action.x is None or action.y is None:
            raise ActionRefused("a drag needs x and y: this desktop does not tell where its pointer is")
        self._move(action.to_x, action.to_y)  # refuses an end off the screen before anything is pressed
        self._move(action.x, action.y)
        time.sleep(DRAG_STEP_S)
        self._send(button(action.button, True))
        try:
            for step in range(1, DRAG_STEPS + 1):
                time.sleep(DRAG_STEP_S)
                self._move(
                    action.x + (action.to_x - action.x) * step // DRAG_STEPS,
                    action.y + (action.to_y - action.y) * step // DRAG_STEPS,
                )
            time.sleep(DRAG_STEP_S)
        finally:
            self._send(button(action.button, False))

    def _scroll(self, action: Action) -> None:
        """The tablet has one wheel; sideways is the wheel with Shift, as toolkits understand it."""
        self._move(action.x, action.y)
        self._wheel(action.scroll_y)
        if action.scroll_x:
            with self._while_down([SHIFT]):
                self._wheel(action.scroll_x)

    def _wheel(self, amount: int) -> None:
        which = "wheel-down" if amount > 0 else "wheel-up"
        for _ in range(min(abs(amount), MAX_SCROLL)):
            self._send(button(which, True))
            self._send(button(which, False))

    # -- keyboard ---------------------------------------------------------------------------

    def _type(self, text: str) -> None:
        """Type text; what the keyboard lacks is typed from inside the guest, where that is possible."""
        runs = itertools.groupby(text.replace("\r\n", "\n"), key=lambda char: keys_of_char(char) is not None)
        parts = [(has_keys, "".join(chars)) for has_keys, chars in runs]
        if self._type_rest is None and (missing := [part for has_keys, part in parts if not has_keys]):
            raise ActionRefused(f"this desktop's keyboard has no {missing[0][:20]!r}")
        for has_keys, part in parts:
            if has_keys:
                for char in part:
                    self._chord(list(keys_of_char(char) or ()))
            elif self._type_rest is not None:
                self._queues.wait_taken()
                self._type_rest(part)

    def _chord(self, keys: list[str]) -> None:
        """Press in order, release in reverse, in one command: nothing is lost in between."""
        keys = [name for name in keys if name not in self._held]
        if keys:
            self._send(*(key(name, True) for name in keys), *(key(name, False) for name in reversed(keys)))

    def _keys(self, action: Action) -> None:
        """A chord once, or its last key as often as it is counted, or held for a time."""
        keys = keys_of_chord(action.keys)
        if action.presses == 1 and not action.seconds:
            self._chord(keys)
            return
        with self._while_down(keys[:-1]):
            for _ in range(action.presses):
                with self._while_down(keys[-1:]):
                    time.sleep(action.seconds)

    def _paste(self, text: str) -> None:
        if self._copy is None:
            raise ActionRefused("text cannot be pasted on this desktop; type it")
        self._queues.wait_taken()
        self._chord(keys_of_chord(self._copy(text)))

    def _hold(self, keys: list[str]) -> None:
        """Keys that stay down; no chord and no modifier lets go of them."""
        self._press([name for name in keys if name not in self._held])
        self._held.update(keys)

    def _let_go(self, keys: list[str]) -> None:
        self._release(keys)
        self._held.difference_update(keys)

    @contextlib.contextmanager
    def _during(self, modifiers: tuple[str, ...]) -> Iterator[None]:
        """With these held, unless they are already."""
        if not modifiers:
            yield
            return
        with self._while_down(keys_of_chord(modifiers)):
            yield

    @contextlib.contextmanager
    def _while_down(self, keys: list[str]) -> Iterator[None]:
        keys = [name for name in keys if name not in self._held]
        self._press(keys)
        try:
            yield
        finally:
            self._release(keys)

    def _press(self, keys: list[str]) -> None:
        self._switch(keys, down=True)

    def _release(self, keys: list[str]) -> None:
        self._switch(keys[::-1], down=False)

    def _switch(self, keys: list[str], *, down: bool) -> None:
        for name in keys:
            self._send(key(name, down))
        if keys:
            self._settle()

    def _settle(self) -> None:
        """Keyboard and pointer are two devices: the guest has read the one before the other is used."""
        self._queues.wait_taken()
        self._queues.let_programs_read()


def axis(name: str, pixel: int, size: int) -> dict[str, Any]:
    """Pointer position: the middle of the pixel on the tablet's scale."""
    value = (2 * pixel + 1) * (ABS_MAX + 1) // (2 * size)
    return {"type": "abs", "data": {"axis": name, "value": min(ABS_MAX, value)}}


def button(name: str, down: bool) -> dict[str, Any]:
    return {"type": "btn", "data": {"button": name, "down": down}}


def key(name: str, down: bool) -> dict[str, Any]:
    return {"type": "key", "data": {"key": {"type": "qcode", "data": name}, "down": down}}
