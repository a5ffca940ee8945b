"""Actions as the tags of the keyboard dialects."""

from __future__ import annotations

from training.actions.pointer_words import TAG_POINTER
from training.actions.write.json_call import WritePoint, direction_and_amount, short_number
from training.actions.write.unsaid_parts import require_words
from training.contracts.types import Action, ActionKind

CLOSE = "</action>"


def keyboard_tag(action: Action) -> str:
    """The tag that says `action` without a pointer. Raises ValueError when none does."""
    require_words(action, "keyboard")
    text = action.text or ""
    match action.kind:
        case ActionKind.TERMINATE if action.status != "failure" and not text:
            return "<done/>"
        case ActionKind.WAIT:
            return _tag(f"wait {short_number(action.seconds)}")
        case ActionKind.KEY:
            return _tag(f"sendkey {'-'.join(_key(key) for key in action.keys)}")
        case ActionKind.TYPE if CLOSE in text:
            raise ValueError("the keyboard dialects cannot type their own closing tag")
        case ActionKind.TYPE if text.endswith("\n"):
            return _tag(f"typeline {text[:-1]}")
        case ActionKind.TYPE:
            return _tag(f"type {text}")
    raise ValueError(f"the keyboard dialect has no word for {action.kind.value}")


def keyboard_mouse_tag(action: Action, point: WritePoint) -> str:
    """The tag that says `action`, with a pointer. Raises ValueError when none does."""
    require_words(action, "keyboard-mouse")
    if action.kind is ActionKind.DRAG:
        start, end = (
            _numbers(action, action.x, action.y, point),
            _numbers(action, action.to_x, action.to_y, point),
        )
        return _tag(f"drag {start} {end}")
    if action.kind is ActionKind.SCROLL and action.x is None:
        direction, amount = direction_and_amount(action)
        return _tag(f"scroll {direction} {amount}")
    verb = TAG_POINTER.get(action.kind)
    return _tag(f"{verb} {_numbers(action, action.x, action.y, point)}") if verb else keyboard_tag(action)


def _tag(words: str) -> str:
    return f"<action>{words}{CLOSE}"


def _key(name: str) -> str:
    """The hyphen joins keys, so its own key goes by QEMU's name."""
    return "minus" if name == "-" else name


def _numbers(action: Action, x: int | None, y: int | None, point: WritePoint) -> str:
    if x is None or y is None:
        raise ValueError(f"the keyboard-mouse dialect needs every point of a {action.kind.value}")
    return " ".join(str(number) for number in point(x, y))
