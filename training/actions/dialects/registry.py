"""All dialects. One row each: a dialect is deleted with its folder, this row and its name in the config."""

from training.actions.dialects.anthropic.dialect import ANTHROPIC
from training.actions.dialects.contract import Dialect
from training.actions.dialects.evocua.dialect import EVOCUA
from training.actions.dialects.gui_owl.dialect import GUI_OWL
from training.actions.dialects.holo.dialect import HOLO
from training.actions.dialects.json.dialect import JSON
from training.actions.dialects.keyboard.dialect import KEYBOARD
from training.actions.dialects.keyboard_mouse.dialect import KEYBOARD_MOUSE
from training.actions.dialects.openai.dialect import OPENAI
from training.actions.dialects.opencua.dialect import OPENCUA
from training.actions.dialects.pyautogui.dialect import PYAUTOGUI
from training.actions.dialects.tool_call.dialect import TOOL_CALL
from training.actions.dialects.ui_tars.dialect import UI_TARS
from training.actions.dialects.xml_call.dialect import XML_CALL

DIALECTS: tuple[Dialect, ...] = (
    JSON,
    TOOL_CALL,
    XML_CALL,
    EVOCUA,
    GUI_OWL,
    HOLO,
    ANTHROPIC,
    OPENAI,
    UI_TARS,
    PYAUTOGUI,
    OPENCUA,
    KEYBOARD_MOUSE,
    KEYBOARD,
)
"""Of two that begin at the same place the earlier one is read: keyboard-mouse says all that keyboard does."""
AUTO = "auto"
"""Reads every dialect that a text shows, and writes json."""


def find_dialect(name: str) -> Dialect:
    """The dialect that is written under this name. Raises ValueError."""
    found = next((row for row in DIALECTS if row.name == (JSON.name if name == AUTO else name)), None)
    if found is None:
        raise ValueError(f"unknown dialect {name!r}; use {AUTO}, {', '.join(row.name for row in DIALECTS)}")
    return found


def tried_dialects(name: str) -> tuple[Dialect, ...]:
    """The dialects in which a text may be, by the setting `prompt.dialect`."""
    return tuple(row for row in DIALECTS if row.is_tried) if name == AUTO else (find_dialect(name),)
