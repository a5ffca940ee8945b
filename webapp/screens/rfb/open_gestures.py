"""What a person is doing at the moment, and the action that it becomes."""

from dataclasses import dataclass

from training.contracts.action import MAX_HOLD_S, Button
from training.contracts.types import Action, ActionKind
from webapp.screens.rfb.protocol import PointerEvent

DRAG_PIXELS = 4
LEFT, MIDDLE, RIGHT = 0, 1, 2
BUTTONS: dict[int, Button] = {LEFT: "left", MIDDLE: "middle", RIGHT: "right"}
LEFT_CLICKS = {1: ActionKind.CLICK, 2: ActionKind.DOUBLE_CLICK, 3: ActionKind.TRIPLE_CLICK}
OTHER_CLICKS = {MIDDLE: ActionKind.MIDDLE_CLICK, RIGHT: ActionKind.RIGHT_CLICK}


@dataclass(slots=True)
class Gesture:
    """One action that a person does; `action` is None until it is over."""

    index: int
    began_at: float
    action: Action | None = None
    ended_at: float | None = None


@dataclass(slots=True)
class Clicks:
    """A left click that may become a double click."""

    gesture: Gesture
    x: int
    y: int
    times: int
    last_at: float
    modifiers: tuple[str, ...] = ()

    def action(self, pointer: PointerEvent) -> Action:
        return left_click(self)


@dataclass(slots=True)
class Press:
    """A button that is held."""

    gesture: Gesture
    button: int
    x: int
    y: int
    times: int = 1
    modifiers: tuple[str, ...] = ()

    def action(self, pointer: PointerEvent) -> Action:
        if not is_near(self.x, self.y, pointer):
            return Action(
                kind=ActionKind.DRAG,
                x=self.x,
                y=self.y,
                to_x=pointer.x,
                to_y=pointer.y,
                button=BUTTONS[self.button],
                modifiers=self.modifiers,
            )
        if self.button == LEFT:
            return left_click(self)
        return Action(kind=OTHER_CLICKS[self.button], x=self.x, y=self.y, modifiers=self.modifiers)


@dataclass(slots=True)
class Text:
    gesture: Gesture
    text: str
    last_at: float

    def action(self, pointer: PointerEvent) -> Action:
        return Action(kind=ActionKind.TYPE, text=self.text)


@dataclass(slots=True)
class Key:
    """A chord whose last key is down, or may be pressed again while its modifiers are held."""

    gesture: Gesture
    keysym: int
    keys: tuple[str, ...]
    last_at: float
    seconds: float = 0.0
    times: int = 1
    repeats: int = 0

    def action(self, pointer: PointerEvent) -> Action:
        seconds = round(min(self.seconds, MAX_HOLD_S), 2)
        return Action(kind=ActionKind.KEY, keys=self.keys, presses=self.times, seconds=seconds)


@dataclass(slots=True)
class Scroll:
    gesture: Gesture
    x: int
    y: int
    notches: tuple[int, int]
    direction: tuple[int, int]
    last_at: float
    modifiers: tuple[str, ...] = ()

    def action(self, pointer: PointerEvent) -> Action:
        right, down = self.notches
        return Action(
            kind=ActionKind.SCROLL,
            x=self.x,
            y=self.y,
            scroll_x=right,
            scroll_y=down,
            modifiers=self.modifiers,
        )


def left_click(clicks: Clicks | Press) -> Action:
    """The click that is counted so often; more than three are a plain one with its number."""
    kind = LEFT_CLICKS.get(clicks.times, ActionKind.CLICK)
    presses = 1 if clicks.times in LEFT_CLICKS else clicks.times
    return Action(kind=kind, x=clicks.x, y=clicks.y, presses=presses, modifiers=clicks.modifiers)


def is_near(x: int, y: int, at: PointerEvent) -> bool:
    """Whether the pointer has not moved so far that it drags."""
    return abs(at.x - x) <= DRAG_PIXELS and abs(at.y - y) <= DRAG_PIXELS
