"""What an agent does to a desktop: one typed command, and what a completion meant."""

from enum import StrEnum
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from training.contracts.wire import Wire

MODIFIER_NAMES = ("ctrl", "shift", "alt", "super")
MAX_PRESSES = 100
MAX_HOLD_S = 60.0
MAX_DOWN_KEYS = 5
NEAR_PX = 12
"""Points this close land on the same thing: half the height of a menu row."""
Button = Literal["left", "middle", "right"]


class ActionKind(StrEnum):
    CLICK = "click"
    DOUBLE_CLICK = "double_click"
    TRIPLE_CLICK = "triple_click"
    RIGHT_CLICK = "right_click"
    MIDDLE_CLICK = "middle_click"
    MOVE = "move"
    DRAG = "drag"
    SCROLL = "scroll"
    TYPE = "type"
    KEY = "key"
    WAIT = "wait"
    TERMINATE = "terminate"
    KEY_DOWN = "key_down"
    """Its keys go down and stay down, until a KEY_UP names them or the desktop changes hands."""
    KEY_UP = "key_up"
    MOUSE_DOWN = "mouse_down"
    """Likewise of one button."""
    MOUSE_UP = "mouse_up"
    PASTE = "paste"
    """Text by the clipboard, which holds it afterwards."""


K = ActionKind
COUNTED_CLICKS = frozenset({K.CLICK, K.RIGHT_CLICK, K.MIDDLE_CLICK})
CLICKS = COUNTED_CLICKS | {K.DOUBLE_CLICK, K.TRIPLE_CLICK}
WITH_MODIFIERS = CLICKS | {K.DRAG, K.SCROLL}
WITH_BUTTON = frozenset({K.DRAG, K.MOUSE_DOWN, K.MOUSE_UP})
WITH_PRESSES = COUNTED_CLICKS | {K.KEY}


class Action(Wire):
    """One parsed desktop command. Coordinates are screen pixels of the desktop."""

    kind: ActionKind
    x: int | None = None
    """Pixel column, 0-based; None = where the pointer is."""
    y: int | None = None
    to_x: int | None = None
    """Drag end, pixels."""
    to_y: int | None = None
    text: str | None = None
    """For TYPE and PASTE: literal text; typed newlines are Return."""
    keys: tuple[str, ...] = ()
    """For KEY, KEY_DOWN, KEY_UP: one chord, X keysym-like names in press order, e.g. ("ctrl", "s")."""
    scroll_x: int = 0
    """Wheel notches, right positive."""
    scroll_y: int = 0
    """Wheel notches, down positive."""
    seconds: float = 0.0
    """For WAIT; for KEY how long the chord is held, 0 = a tap."""
    status: Literal["success", "failure"] | None = None
    """For TERMINATE: what the agent claims; failure = the task is infeasible."""
    modifiers: tuple[str, ...] = Field(default=(), exclude_if=lambda names: not names)
    """Held during a click, drag or scroll, in press order."""
    button: Button = Field(default="left", exclude_if=lambda name: name == "left")
    """Of MOUSE_DOWN, MOUSE_UP and DRAG; clicks say theirs by their kind."""
    presses: int = Field(default=1, ge=1, le=MAX_PRESSES, exclude_if=lambda count: count == 1)
    """How often a KEY's last key, the others being held, or the button of a click is pressed."""

    @field_validator("modifiers")
    @classmethod
    def _are_modifiers(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := [name for name in names if name not in MODIFIER_NAMES]:
            raise ValueError(f"{unknown[0][:20]!r} is no modifier; use {', '.join(MODIFIER_NAMES)}")
        if len(set(names)) < len(names):
            raise ValueError("a modifier is named twice")
        return names

    @model_validator(mode="after")
    def _belong_to_its_kind(self) -> Self:
        kind = self.kind.value
        if self.modifiers and self.kind not in WITH_MODIFIERS:
            raise ValueError(f"modifiers: {kind} takes none; they are held during a click, drag or scroll")
        if self.button != "left" and self.kind not in WITH_BUTTON:
            raise ValueError(f"button: {kind} takes none; use right_click or middle_click")
        if self.presses > 1 and self.kind not in WITH_PRESSES:
            raise ValueError(f"presses: {kind} is not counted; key, click, right_click, middle_click are")
        if self.kind in (K.KEY_DOWN, K.KEY_UP) and not 1 <= len(self.keys) <= MAX_DOWN_KEYS:
            raise ValueError(f"keys: {kind} needs 1 to {MAX_DOWN_KEYS} keys")
        if self.kind is K.PASTE and not self.text:
            raise ValueError("text: paste needs the text")
        if self.kind is K.KEY:
            self._check_hold()
        return self

    def _check_hold(self) -> None:
        if not 0 <= self.seconds <= MAX_HOLD_S:
            raise ValueError(f"seconds: a key is held from 0 to {MAX_HOLD_S:g} s")
        if self.seconds and self.presses > 1:
            raise ValueError("presses: a key that is held for seconds is pressed once")


class ParsedCompletion(Wire):
    """What a completion meant: either its actions in order, at least one, or why there are none."""

    actions: tuple[Action, ...] = ()
    error: str | None = None
    """Why nothing could be parsed; a visible event with its own reward term."""
    dialect: str = ""
    """Which parser row matched: json, pyautogui, keyboard ..."""
    thought: str = ""
    """Text before the first action."""

    @property
    def action(self) -> Action | None:
        """The last one; the others stand before it in `actions`."""
        return self.actions[-1] if self.actions else None
