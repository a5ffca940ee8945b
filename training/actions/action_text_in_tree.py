"""Which text of an action Slime-OSWorld looks for in the accessibility tree, and whether it is there."""

import re

from training.actions.write.pyautogui_call import key_of
from training.contracts.types import Action, ActionKind

QUOTED = re.compile("[\"']([^\"']+)[\"']")


def target_text(action: Action) -> str:
    """The first quoted piece of the action's pyautogui call: of a typed text, or a chord's first key.

    A quote inside a typed text ends the piece, as it does there. "" for pointers, waits and endings.
    """
    if action.kind is ActionKind.TYPE:
        escaped = (action.text or "").replace("\\", "\\\\").replace('"', '\\"')
        found = QUOTED.search(f'"{escaped}"')
        return found[1] if found else ""
    if action.kind is ActionKind.KEY and action.keys:
        return key_of(action.keys[0])
    return ""


def is_grounded(action: Action | None, tree: str) -> bool:
    """Whether the tree that the agent saw holds the action's text, in small letters."""
    target = target_text(action).lower() if action else ""
    return bool(target) and target in tree.lower()
