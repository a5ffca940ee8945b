"""Key names of every dialect -> one canonical, keysym-like name."""

from __future__ import annotations

from collections.abc import Sequence

from training.actions.parse_result import ActionTextError

MODIFIERS = frozenset({"ctrl", "shift", "alt", "super"})
EDITING = ("Return", "Tab", "Escape", "BackSpace", "Delete", "Insert", "space")
MOVING = ("Home", "End", "Page_Up", "Page_Down", "Up", "Down", "Left", "Right")
OTHER = ("Menu", "Print", "Pause", "Caps_Lock", "Num_Lock", "Scroll_Lock")
NAMED = (*EDITING, *MOVING, *OTHER, *(f"F{n}" for n in range(1, 13)))
ALIASES = {
    "enter": "Return",
    "ret": "Return",
    "esc": "Escape",
    "backspace": "BackSpace",
    "bksp": "BackSpace",
    "del": "Delete",
    "ins": "Insert",
    "spc": "space",
    "spacebar": "space",
    "pageup": "Page_Up",
    "pgup": "Page_Up",
    "pagedown": "Page_Down",
    "pgdn": "Page_Down",
    "arrowup": "Up",
    "arrowdown": "Down",
    "arrowleft": "Left",
    "arrowright": "Right",
    "capslock": "Caps_Lock",
    "numlock": "Num_Lock",
    "scrolllock": "Scroll_Lock",
    "printscreen": "Print",
    "prtsc": "Print",
    "control": "ctrl",
    "ctrlleft": "ctrl",
    "ctrlright": "ctrl",
    "control_l": "ctrl",
    "shiftleft": "shift",
    "shiftright": "shift",
    "shift_l": "shift",
    "option": "alt",
    "altleft": "alt",
    "altright": "alt",
    "alt_l": "alt",
    "win": "super",
    "winleft": "super",
    "meta": "super",
    "meta_l": "super",
    "super_l": "super",
    "cmd": "super",
    "command": "super",
    "minus": "-",
    "plus": "+",
    # QEMU's names of punctuation keys, which the Windows seed's sendkey uses.
    "comma": ",",
    "dot": ".",
    "slash": "/",
    "backslash": "\\",
    "semicolon": ";",
    "apostrophe": "'",
    "equal": "=",
    "bracket_left": "[",
    "bracket_right": "]",
    "grave_accent": "`",
    "caps_lock": "Caps_Lock",
    "meta_r": "super",
    "ctrl_r": "ctrl",
    "shift_r": "shift",
    "alt_r": "alt",
    "sysrq": "Print",
}
_KNOWN = {name.lower(): name for name in NAMED} | {name: name for name in MODIFIERS} | ALIASES
MAX_CHORD = 5


def key_name(name: str) -> str:
    """Canonical name of one key; raises ActionTextError for an unknown one."""
    if len(name) == 1 and name.isprintable():
        return "space" if name == " " else name
    if name == "\n":
        return "Return"
    if name == "\t":
        return "Tab"
    known = _KNOWN.get(name.lower())
    if known is None:
        raise ActionTextError(f"unknown key {name[:20]!r}")
    return known


def chord(names: Sequence[object]) -> tuple[str, ...]:
    """Canonical chord in press order; raises ActionTextError when a name is no key."""
    if not names or len(names) > MAX_CHORD:
        raise ActionTextError(f"keys must name 1 to {MAX_CHORD} keys")
    if not all(isinstance(name, str) and name for name in names):
        raise ActionTextError("keys must be key names")
    return tuple(key_name(str(name)) for name in names)


def split_chord(text: str, separator: str) -> tuple[str, ...]:
    """Chord written as "ctrl+s" or "ctrl-s"; the separator alone is the key of that name."""
    if len(text) == 1:
        return chord([text])
    parts = text.split(separator)
    if len(parts) >= 2 and parts[-1] == "" and parts[-2] == "":  # "ctrl++"
        parts = [*parts[:-2], separator]
    return chord(parts)
