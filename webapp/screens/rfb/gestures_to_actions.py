"""Pointer and key events of a person -> the typed actions that a policy could have taken.

    press, release            -> click       twice, three times within DOUBLE_S -> double_click, triple_click
    press, move, release      -> drag        wheel notches at one place -> one scroll
    characters in a row       -> one type    key with modifiers, or without a character -> key
An action begins with its first event, so that the screen before it is known; it ends when nothing more
can belong to it. What a person does apart from that (hovering, a modifier held while clicking) is no
action: `Action` cannot say it. Times are wall-clock seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from training.actions.key_names import canonical_key
from training.contracts.types import Action, ActionKind
from webapp.screens.rfb import keysyms
from webapp.screens.rfb.protocol import InputEvent, KeyEvent, PointerEvent

DOUBLE_S = 0.4
TEXT_PAUSE_S = 2.0
"""Characters further apart are two texts: the person looked at the screen between them."""
SCROLL_PAUSE_S = 0.4
MAX_TEXT = 400
DRAG_PIXELS = 4
CLICKS = {1: ActionKind.CLICK, 2: ActionKind.DOUBLE_CLICK, 3: ActionKind.TRIPLE_CLICK}
LEFT, MIDDLE, RIGHT = 0, 1, 2
WHEEL = {3: (0, -1), 4: (0, 1), 5: (-1, 0), 6: (1, 0)}
"""Button bit -> notches (right, down)."""
CHORD_MODIFIERS = ("ctrl", "alt", "super")
"""With one of these held, a character is a shortcut and no text."""


@dataclass(slots=True)
class Gesture:
    """One action that a person does; `action` is None until it is over."""

    index: int
    began_at: float
    action: Action | None = None
    ended_at: float | None = None


@dataclass(slots=True)
class _Clicks:
    """A left click that may become a double click."""

    gesture: Gesture
    x: int
    y: int
    times: int
    last_at: float


@dataclass(slots=True)
class _Press:
    """A button that is held."""

    gesture: Gesture
    button: int
    x: int
    y: int
    times: int = 1


@dataclass(slots=True)
class _Text:
    gesture: Gesture
    text: str
    last_at: float


@dataclass(slots=True)
class _Scroll:
    gesture: Gesture
    x: int
    y: int
    notches: tuple[int, int]
    direction: tuple[int, int]
    last_at: float


@dataclass(slots=True)
class GestureReader:
    """Turns one controller's events into gestures. `next_index` goes on where an earlier one stopped."""

    next_index: int = 0
    _news: list[Gesture] = field(default_factory=list)
    _open: _Clicks | _Press | _Text | _Scroll | None = None
    _pointer: PointerEvent = field(default_factory=lambda: PointerEvent(0, 0, 0))
    _modifiers: list[str] = field(default_factory=list)
    _lone_modifier: str = ""
    """The modifier that was pressed last, while nothing else happened since."""

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

    def _at_once(self, action: Action, now: float) -> None:
        self._end_open(now)
        self._end(self._begin(now), action, now)

    def _expire(self, now: float) -> None:
        match self._open:
            case _Clicks(last_at=last_at) if now - last_at > DOUBLE_S:
                self._end_open(now)
            case _Text(last_at=last_at) if now - last_at > TEXT_PAUSE_S:
                self._end_open(now)
            case _Scroll(last_at=last_at) if now - last_at > SCROLL_PAUSE_S:
                self._end_open(now)

    def _end_open(self, now: float) -> None:
        match self._open:
            case _Clicks() as clicks:
                action = Action(kind=CLICKS[clicks.times], x=clicks.x, y=clicks.y)
                self._end(clicks.gesture, action, clicks.last_at)
            case _Press() as press:
                self._end(press.gesture, _press_action(press, self._pointer), now)
            case _Text() as text:
                self._end(text.gesture, Action(kind=ActionKind.TYPE, text=text.text), text.last_at)
            case _Scroll() as scroll:
                right, down = scroll.notches
                action = Action(kind=ActionKind.SCROLL, x=scroll.x, y=scroll.y, scroll_x=right, scroll_y=down)
                self._end(scroll.gesture, action, scroll.last_at)
        self._open = None

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
        if isinstance(self._open, _Press):
            return  # a second button while one is held belongs to the first
        last = self._open
        goes_on = button == LEFT and isinstance(last, _Clicks) and last.times < 3
        if goes_on and isinstance(last, _Clicks) and _near(last.x, last.y, at):
            self._open = _Press(last.gesture, LEFT, last.x, last.y, last.times + 1)
            return
        self._end_open(now)
        self._open = _Press(self._begin(now), button, at.x, at.y)

    def _release(self, button: int, at: PointerEvent, now: float) -> None:
        press = self._open
        if not isinstance(press, _Press) or press.button != button:
            return
        if button == LEFT and _near(press.x, press.y, at):
            self._open = _Clicks(press.gesture, press.x, press.y, press.times, now)
        else:
            self._end_open(now)

    def _wheel(self, bit: int, at: PointerEvent, now: float) -> None:
        direction = WHEEL[bit]
        scroll = self._open
        same = isinstance(scroll, _Scroll) and scroll.direction == direction and _near(scroll.x, scroll.y, at)
        if not same:
            self._end_open(now)
            scroll = _Scroll(self._begin(now), at.x, at.y, (0, 0), direction, now)
            self._open = scroll
        assert isinstance(scroll, _Scroll)
        scroll.notches = (scroll.notches[0] + direction[0], scroll.notches[1] + direction[1])
        scroll.last_at = now

    # -- keyboard -----------------------------------------------------------------------------

    def _key(self, event: KeyEvent, now: float) -> None:
        modifier = keysyms.MODIFIERS.get(event.keysym)
        if modifier:
            self._modifier(modifier, event.is_down, now)
        elif event.is_down and event.keysym not in keysyms.LEVEL_SHIFTS:
            self._lone_modifier = ""
            self._press_key(event.keysym, now)

    def _modifier(self, name: str, is_down: bool, now: float) -> None:
        if is_down:
            if name not in self._modifiers:
                self._modifiers.append(name)
                self._lone_modifier = name
            return
        if name in self._modifiers:
            self._modifiers.remove(name)
        if self._lone_modifier == name and name != "shift":
            self._at_once(Action(kind=ActionKind.KEY, keys=(name,)), now)
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
            self._at_once(Action(kind=ActionKind.KEY, keys=(*held, name)), now)

    def _character(self, char: str, now: float) -> None:
        text = self._open
        if not isinstance(text, _Text) or len(text.text) >= MAX_TEXT:
            self._end_open(now)
            text = _Text(self._begin(now), "", now)
            self._open = text
        text.text += char
        text.last_at = now


def _press_action(press: _Press, now_at: PointerEvent) -> Action:
    if press.button == RIGHT:
        return Action(kind=ActionKind.RIGHT_CLICK, x=press.x, y=press.y)
    if press.button == MIDDLE:
        return Action(kind=ActionKind.MIDDLE_CLICK, x=press.x, y=press.y)
    if _near(press.x, press.y, now_at):
        return Action(kind=CLICKS[press.times], x=press.x, y=press.y)
    return Action(kind=ActionKind.DRAG, x=press.x, y=press.y, to_x=now_at.x, to_y=now_at.y)


def _near(x: int, y: int, at: PointerEvent) -> bool:
    return abs(at.x - x) <= DRAG_PIXELS and abs(at.y - y) <= DRAG_PIXELS


def _chord_name(char: str) -> str:
    """Letters of a shortcut are written small; Shift stands beside them when it is held."""
    return canonical_key(char.lower()) or char
