"""Names of keys as people and models write them -> one X keysym name."""

from __future__ import annotations

KEY_ALIASES = {
    "ctrl": "Control_L", "control": "Control_L", "alt": "Alt_L", "option": "Alt_L", "shift": "Shift_L",
    "super": "Super_L", "win": "Super_L", "meta": "Super_L", "cmd": "Super_L", "command": "Super_L",
    "ctrlleft": "Control_L", "ctrlright": "Control_R", "altleft": "Alt_L", "altright": "Alt_R",
    "shiftleft": "Shift_L", "shiftright": "Shift_R", "winleft": "Super_L", "winright": "Super_R",
    "enter": "Return", "esc": "Escape", "del": "Delete", "ins": "Insert", "backspace": "BackSpace",
    "back_space": "BackSpace", "tab": "Tab", "space": "space", "pageup": "Prior", "page_up": "Prior",
    "pgup": "Prior", "pagedown": "Next", "page_down": "Next", "pgdn": "Next", "capslock": "Caps_Lock",
    "numlock": "Num_Lock", "printscreen": "Print", "prtsc": "Print", "apps": "Menu",
}  # fmt: skip
NAMED_KEYS = (
    "Return Escape Tab BackSpace Delete Insert Home End Prior Next Left Right Up Down Print Menu Pause "
    "Caps_Lock Num_Lock Scroll_Lock Control_L Control_R Alt_L Alt_R Shift_L Shift_R Super_L Super_R space "
    + " ".join(f"F{n}" for n in range(1, 13))
).split()
_BY_LOWER_NAME = {name.lower(): name for name in NAMED_KEYS}
TEXT_CONTROL = {"\n": "Return", "\r": "Return", "\t": "Tab", "\b": "BackSpace"}


def canonical_key(name: str) -> str | None:
    """X keysym name of a named key, in any usual spelling; None for an unknown name."""
    lower = name.strip().lower()
    return KEY_ALIASES.get(lower) or _BY_LOWER_NAME.get(lower)
