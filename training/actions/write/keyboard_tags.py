"""Actions as the tags of the keyboard dialects."""

from training.actions.parse.keyboard_tags import CLOSE, QUOTES
from training.actions.write.json_call import short_number
from training.actions.write.unsaid_parts import require_words
from training.contracts.types import Action, ActionKind

OWN_MARKS = (CLOSE, "</think>", "</thinking>")


def keyboard_tag(action: Action) -> str:
    """The tag that says `action` without a pointer. Raises ValueError when none does."""
    require_words(action, "keyboard")
    text = action.text or ""
    match action.kind:
        case ActionKind.TERMINATE if action.status != "failure" and not text:
            return "<done/>"
        case ActionKind.WAIT:
            return tag(f"wait {short_number(action.seconds)}")
        case ActionKind.KEY:
            return tag(f"sendkey {'-'.join(_key(key) for key in action.keys)}")
        case ActionKind.TYPE if any(mark in text for mark in OWN_MARKS):
            raise ValueError("the keyboard dialects cannot type the closing tag of an action or a thought")
        case ActionKind.TYPE if text.endswith("\n"):
            return tag(f"typeline {_quoted(text[:-1])}")
        case ActionKind.TYPE:
            return tag(f"type {_quoted(text)}")
    raise ValueError(f"the keyboard dialects have no word for {action.kind.value}")


def tag(words: str) -> str:
    """These words between the tags of an action."""
    return f"<action>{words}{CLOSE}"


def _key(name: str) -> str:
    """The hyphen and the plus join keys, so their own keys go by QEMU's names."""
    return {"-": "minus", "+": "plus"}.get(name, name)


def _quoted(text: str) -> str:
    """In quotes where the reader would take quotes or a line end away."""
    is_taken = text.endswith(("\n", "\r")) or (len(text) > 1 and text[0] in QUOTES and text[-1] == text[0])
    return f'"{text}"' if is_taken else text
