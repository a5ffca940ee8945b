"""Characters and key names -> keys of a US keyboard as QEMU names them."""

from string import ascii_lowercase, digits

from training.actions.key_names import canonical_key
from workers.desktops.console_contract import ActionRefused
from workers.desktops.keysym_names import TEXT_CONTROL

SHIFT = "shift"
BY_NAME = {
    "Return": "ret", "Escape": "esc", "Tab": "tab", "BackSpace": "backspace", "Delete": "delete",
    "Insert": "insert", "Home": "home", "End": "end", "Page_Up": "pgup", "Page_Down": "pgdn", "Left": "left",
    "Right": "right", "Up": "up", "Down": "down", "Print": "print", "Menu": "menu", "Pause": "pause",
    "Caps_Lock": "caps_lock", "Num_Lock": "num_lock", "Scroll_Lock": "scroll_lock", "ctrl": "ctrl",
    "alt": "alt", "shift": SHIFT, "super": "meta_l", "space": "spc",
    **{f"F{number}": f"f{number}" for number in range(1, 13)},
}  # fmt: skip
"""Canonical name -> QEMU's key code."""
RIGHT_HAND = {"Control_R": "ctrl_r", "Alt_R": "alt_r", "Shift_R": "shift_r", "Super_R": "meta_r"}
"""X's names of the right modifiers, which have no canonical name of their own."""
PUNCTUATION = {
    "`": "grave_accent", "-": "minus", "=": "equal", "[": "bracket_left", "]": "bracket_right",
    "\\": "backslash", ";": "semicolon", "'": "apostrophe", ",": "comma", ".": "dot", "/": "slash",
    " ": "spc",
}  # fmt: skip
SHIFTED = dict(zip('~_+{}|:"<>?!@#$%^&*()', "`-=[]\\;',./1234567890", strict=True))
"""Character with Shift -> character of the same key without."""


ALL_KEYS = tuple(
    dict.fromkeys([*BY_NAME.values(), *RIGHT_HAND.values(), *PUNCTUATION.values(), *ascii_lowercase, *digits])
)
"""Every key of the keyboard, once."""


def keys_of_char(char: str) -> tuple[str, ...] | None:
    """Keys to hold together for a character, Shift first; None when a US keyboard does not have it."""
    if char in TEXT_CONTROL:
        return (BY_NAME[TEXT_CONTROL[char]],)
    if char in SHIFTED:
        base = keys_of_char(SHIFTED[char])
        return None if base is None else (SHIFT, *base)
    if char in PUNCTUATION:
        return (PUNCTUATION[char],)
    if char.isascii() and char.isalnum():
        return (SHIFT, char.lower()) if char.isupper() else (char,)
    return None


def keys_of_chord(names: tuple[str, ...]) -> list[str]:
    """Keys of a chord in press order. Raises ActionRefused for an unknown name."""
    if not names:
        raise ActionRefused("a key action needs at least one key")
    keys: list[str] = []
    for name in names:
        known = canonical_key(name) or name
        qcode = RIGHT_HAND.get(name) or BY_NAME.get(known)
        found = (qcode,) if qcode else keys_of_char(known) if len(known) == 1 else None
        if found is None:
            raise ActionRefused(f"there is no key named {name!r}")
        keys += [key for key in found if key not in keys]
    return keys
