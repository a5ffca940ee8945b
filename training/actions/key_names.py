"""The one table of key names: a canonical name for each key, and every other spelling of it.

`Action.keys` holds canonical names. Parsers read any spelling; tables elsewhere hold only what their
hardware calls a key (X keysyms, QEMU's key codes, keysym numbers of VNC).
"""

from __future__ import annotations

from collections.abc import Sequence

from training.actions.errors import ActionTextError

MODIFIERS = frozenset({"ctrl", "shift", "alt", "super"})
ALIASES: dict[str, tuple[str, ...]] = {
    "ctrl": ("control", "ctrlleft", "ctrlright", "control_l", "control_r", "ctrl_r"),
    "shift": ("shiftleft", "shiftright", "shift_l", "shift_r"),
    "alt": ("option", "altleft", "altright", "alt_l", "alt_r", "optionleft", "optionright"),
    "super": (
        "win", "winleft", "winright", "meta", "meta_l", "meta_r", "super_l", "super_r", "cmd", "command",
    ),
    "Return": ("enter", "ret"),
    "Tab": (),
    "Escape": ("esc",),
    "BackSpace": ("bksp", "back_space"),
    "Delete": ("del",),
    "Insert": ("ins",),
    "space": ("spc", "spacebar"),
    "Home": (),
    "End": (),
    "Page_Up": ("pageup", "pgup", "prior"),
    "Page_Down": ("pagedown", "pgdn", "next"),
    "Up": ("arrowup",),
    "Down": ("arrowdown",),
    "Left": ("arrowleft",),
    "Right": ("arrowright",),
    "Menu": ("apps",),
    "Print": ("printscreen", "prtsc", "sysrq"),
    "Pause": (),
    "Caps_Lock": ("capslock",),
    "Num_Lock": ("numlock",),
    "Scroll_Lock": ("scrolllock",),
    **{f"F{number}": () for number in range(1, 13)},
    # QEMU's names of punctuation keys, which the Windows seed's sendkey uses.
    "-": ("minus",),
    "+": ("plus",),
    ",": ("comma",),
    ".": ("dot",),
    "/": ("slash",),
    "\\": ("backslash",),
    ";": ("semicolon",),
    "'": ("apostrophe",),
    "=": ("equal",),
    "[": ("bracket_left",),
    "]": ("bracket_right",),
    "`": ("grave_accent",),
}  # fmt: skip
"""Canonical name -> its other spellings, in small letters. Capitals never matter."""
NAMED = tuple(name for name in ALIASES if len(name) > 1)
"""Canonical names of the keys that make no printable character, space included."""
_CANONICAL = {spelling: name for name, others in ALIASES.items() for spelling in (name.lower(), *others)}
_CHARACTERS = {" ": "space", "\n": "Return", "\t": "Tab"}
MAX_CHORD = 5


def canonical_key(name: str) -> str | None:
    """Canonical name of one key in any spelling, a character being its own; None for an unknown one."""
    if name in _CHARACTERS:
        return _CHARACTERS[name]
    if len(name) == 1 and name.isprintable():
        return name
    return _CANONICAL.get(name.lower())


def key_name(name: str) -> str:
    """Canonical name of one key; raises ActionTextError for an unknown one."""
    known = canonical_key(name)
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
