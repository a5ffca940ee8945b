"""Pointer and key events of a person -> the typed actions that a policy could have taken.

    press, release            -> click       twice within DOUBLE_S -> double_click, and so on
    press, move, release      -> drag        wheel notches at one place -> one scroll
    characters in a row       -> one type    key with modifiers, or without a character -> key
    a key that stays down     -> key for that time
Modifiers that are held while the button goes down belong to clicks, drags and scrolls. An action begins with
its first event, so that the screen before it is known; it ends when nothing more can belong to it. What a
person does apart from that (hovering) is no action. Times are wall-clock seconds.
"""

from dataclasses import dataclass, field

from training.actions.key_names import canonical_key
from training.contracts.action import MAX_PRESSES
from training.contracts.types import Action
from webapp.screens.rfb import keysyms
from webapp.screens.rfb.open_gestures import (
    LEFT,
    MIDDLE,
    RIGHT,
    Clicks,
    Gesture,
    Key,
    Press,
    Scroll,
    Text,
    is_near,
)
from webapp.screens.rfb.protocol import InputEvent, KeyEvent, PointerEvent

DOUBLE_S = 0.4
TEXT_PAUSE_S = 2.0
"""Characters further apart are two texts: the person looked at the screen between them."""
SCROLL_PAUSE_S = 0.4
HOLD_S = 0.8
"""A key that is down for longer is held, and not pressed slowly."""
REPEATS_AFTER_S, REPEAT_S = 0.66, 0.04
"""When an X server repeats a key that an agent holds."""
SWITCHING = frozenset({"alt", "super"})
"""While one is down, a key that is pressed again goes on where it was: alt+Tab, Tab."""
MAX_TEXT = 400
WHEEL = {3: (0, -1), 4: (0, 1), 5: (-1, 0), 6: (1, 0)}
"""Button bit -> notches (right, down)."""
CHORD_MODIFIERS = ("ctrl", "alt", "super")
"""With one of these held, a character is a shortcut and no text."""


@dataclass(slots=True)
class GestureReader:
    """Turns one controller's events into gestures. `next_index` goes on where an earlier one stopped."""

    next_index: int = 0
    _news: list[Gesture] = field(default_factory=list)
    _open: Clicks | Press | Text | Scroll | Key | None = None
    _pointer: PointerEvent = field(default_factory=lambda: PointerEvent(0, 0, 0))
    _modifiers: list[str] = field(default_factory=list)
    _lone_modifier: str = ""
    """The modifier that was pressed last, while nothing else happened since."""
    _lone_since: float = 0.0
    _down: dict[int, float] = field(default_factory=dict)
    """Keysyms of keys that are down, modifiers apart, and since when."""

    def read(self, event: InputEvent, now: float) -> list[Gesture]:
        """What began or ended by this event; one gesture can be in the list at both moments."""
        self._expire(now)
        if isinstance(event, KeyEvent):
            self._key(event, now)
        else:
            self._point(event, now)
        return self._flush()

    def tick(self, now: float) -> list[Gesture]:
        """Gestures that are over because nothing followed."""
        self._expire(now)
        return self._flush()

    def finish(self, now: float) -> list[Gesture]:
        """The person stopped: everything ends."""
        self._end_open(now)
        return self._flush()

    def _flush(self) -> list[Gesture]:
        news, self._news = self._news, []
        return news

    # -- beginning and ending -----------------------------------------------------------------

    def _begin(self, now: float) -> Gesture:
        gesture = Gesture(self.next_index, now)
        self.next_index += 1
        self._news.append(gesture)
        return gesture

    def _end(self, gesture: Gesture, action: Action, at: float) -> None:
        gesture.action, gesture.ended_at = action, at
        if gesture not in self._news:
            self._news.append(gesture)

    def _expire(self, now: float) -> None:
        match self._open:
            case Clicks(last_at=last_at) if now - last_at > DOUBLE_S:
                self._end_open(now)
            case Text(last_at=last_at) if now - last_at > TEXT_PAUSE_S and not self._is_down_since(last_at):
                self._end_open(now)
            case Scroll(last_at=last_at) if now - last_at > SCROLL_PAUSE_S:
                self._end_open(now)

    def _end_open(self, now: float) -> None:
        if self._open is not None:
            ended_at = now if isinstance(self._open, Press) else self._open.last_at
            self._end(self._open.gesture, self._open.action(self._pointer), ended_at)
        self._open = None

    def _is_down_since(self, moment: float) -> bool:
        """Whether the key that went down then still is."""
        return moment in self._down.values()

    # -- pointer ------------------------------------------------------------------------------

    def _point(self, event: PointerEvent, now: float) -> None:
        before, self._pointer = self._pointer, event
        pressed, released = event.buttons & ~before.buttons, before.buttons & ~event.buttons
        if pressed:
            self._lone_modifier = ""
        for bit in WHEEL:
            if pressed >> bit & 1:
                self._wheel(bit, event, now)
        for button in (LEFT, MIDDLE, RIGHT):
            if released >> button & 1:
                self._release(button, event, now)
            if pressed >> button & 1:
                self._press(button, event, now)

    def _press(self, button: int, at: PointerEvent, now: float) -> None:
        if isinstance(self._open, Press):
            return  # a second button while one is held belongs to the first
        last, held = self._open, tuple(self._modifiers)
        goes_on = button == LEFT and isinstance(last, Clicks) and last.times < MAX_PRESSES
        if goes_on and isinstance(last, Clicks) and is_near(last.x, last.y, at) and last.modifiers == held:
            self._open = Press(last.gesture, LEFT, last.x, last.y, last.times + 1, held)
            return
        self._end_open(now)
        self._open = Press(self._begin(now), button, at.x, at.y, modifiers=held)

    def _release(self, button: int, at: PointerEvent, now: float) -> None:
        press = self._open
        if not isinstance(press, Press) or press.button != button:
            return
        if button == LEFT and is_near(press.x, press.y, at):
            self._open = Clicks(press.gesture, press.x, press.y, press.times, now, press.modifiers)
        else:
            self._end_open(now)

    def _wheel(self, bit: int, at: PointerEvent, now: float) -> None:
        direction, held = WHEEL[bit], tuple(self._modifiers)
        scroll = self._open
        goes_on = isinstance(scroll, Scroll) and (scroll.direction, scroll.modifiers) == (direction, held)
        if not (goes_on and isinstance(scroll, Scroll) and is_near(scroll.x, scroll.y, at)):
            self._end_open(now)
            scroll = Scroll(self._begin(now), at.x, at.y, (0, 0), direction, now, held)
            self._open = scroll
        assert isinstance(scroll, Scroll)
        scroll.notches = (scroll.notches[0] + direction[0], scroll.notches[1] + direction[1])
        scroll.last_at = now

    # -- keyboard -----------------------------------------------------------------------------

    def _key(self, event: KeyEvent, now: float) -> None:
        modifier = keysyms.MODIFIERS.get(event.keysym)
        if modifier:
            self._modifier(modifier, event.is_down, now)
        elif event.keysym in keysyms.LEVEL_SHIFTS:
            return
        elif event.is_down:
            self._lone_modifier = ""
            self._down.setdefault(event.keysym, now)
            self._press_key(event.keysym, now)
        else:
            self._release_key(event.keysym, now)

    def _modifier(self, name: str, is_down: bool, now: float) -> None:
        if is_down:
            if name not in self._modifiers:
                self._modifiers.append(name)
                self._lone_modifier, self._lone_since = name, now
            return
        if name in self._modifiers:
            self._modifiers.remove(name)
        if isinstance(self._open, Key) and self._open.keysym not in self._down:
            self._end_open(now)
        if self._lone_modifier == name and name != "shift":
            held_s = now - self._lone_since
            self._end_open(now)
            key = Key(self._begin(self._lone_since), 0, (name,), now, held_s if held_s >= HOLD_S else 0.0)
            self._end(key.gesture, key.action(self._pointer), now)
        self._lone_modifier = ""

    def _press_key(self, keysym: int, now: float) -> None:
        char = keysyms.character(keysym)
        is_chord = any(name in self._modifiers for name in CHORD_MODIFIERS)
        if char is not None and not is_chord:
            self._character(char, now)
            return
        name = keysyms.key_name(keysym) if char is None else _chord_name(char)
        if name is not None:
            # A shifted character says its Shift itself, a named key does not.
            held = [m for m in self._modifiers if m != "shift" or char is None or char.isalpha()]
            self._chord(keysym, (*held, name), now)

    def _chord(self, keysym: int, keys: tuple[str, ...], now: float) -> None:
        """A key goes down, comes again while it is down, or is pressed again while its modifiers are held."""
        key = self._open
        if isinstance(key, Key) and (key.keysym, key.keys) == (keysym, keys):
            key.last_at = now
            if self._down[keysym] < now:
                key.repeats += 1
                key.seconds = REPEATS_AFTER_S + (key.repeats - 0.5) * REPEAT_S
                return
            if key.times < MAX_PRESSES and not key.repeats:
                key.times += 1
                return
        self._end_open(now)
        self._open = Key(self._begin(now), keysym, keys, now)

    def _release_key(self, keysym: int, now: float) -> None:
        since = self._down.pop(keysym, now)
        held_s = now - since
        match self._open:
            case Key(keysym=same) as key if same == keysym:
                key.last_at = now
                if held_s >= HOLD_S and not key.repeats and key.times == 1:
                    key.seconds = held_s
                if key.seconds or not SWITCHING.intersection(key.keys[:-1]):
                    self._end_open(now)
            case Text() as text if held_s >= HOLD_S and text.last_at == since:
                self._hold_character(text, keysym, held_s, now)

    def _hold_character(self, text: Text, keysym: int, held_s: float, now: float) -> None:
        """The last character of a text stayed down, and did not come again: it is a key that was held."""
        char = keysyms.character(keysym)
        if char is None or not text.text.endswith(char):
            return
        text.text = text.text[: -len(char)]
        began_at = now - held_s
        if text.text:
            self._end_open(now)
            gesture = self._begin(began_at)
        else:
            gesture = text.gesture
        self._open = Key(gesture, keysym, (canonical_key(char) or char,), now, held_s)
        self._end_open(now)

    def _character(self, char: str, now: float) -> None:
        text = self._open
        if not isinstance(text, Text) or len(text.text) >= MAX_TEXT:
            self._end_open(now)
            text = Text(self._begin(now), "", now)
            self._open = text
        text.text += char
        text.last_at = now


def _chord_name(char: str) -> str:
    """Letters of a shortcut are written small; Shift stands beside them when it is held."""
    return canonical_key(char.lower()) or char
