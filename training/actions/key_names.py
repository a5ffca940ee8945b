"""The one table of key names: a canonical name for each key, and every other spelling of it.

`Action.keys` holds canonical names. Parsers read any spelling; tables elsewhere hold only what their
hardware calls a key (X keysyms, QEMU's key codes, keysym numbers of VNC).
"""

from collections.abc import Sequence

from training.actions.errors import ActionTextError

MODIFIERS = frozenset({"ctrl", "shift", "alt", "super"})
ALIASES: dict[str, tuple[str, ...]] = {
    "ctrl": ("control", "ctrlleft", "ctrlright", "control_l", "control_r", "ctrl_r"),
    "shift": ("shiftleft", "shiftright", "shift_l", "shift_r"),
    "alt": ("option", "altleft", "altright", "alt_l", "alt_r", "optionleft", "optionright"),
    "super": (
        "win", "winleft", "winright", "windows", "meta", "meta_l", "meta_r", "super_l", "super_r", "cmd",
        "command",
    ),
    "Return": ("enter", "ret", "kp_enter", "num_enter", "numpad_enter"),
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
    "Up": ("arrowup", "uparrow"),
    "Down": ("arrowdown", "downarrow"),
    "Left": ("arrowleft", "leftarrow"),
    "Right": ("arrowright", "rightarrow"),
    "Menu": ("apps", "contextmenu"),
    "Print": ("printscreen", "prtsc", "prtscr", "prntscrn", "sysrq"),
    "Pause": (),
    "Caps_Lock": ("capslock",),
    "Num_Lock": ("numlock",),
    "Scroll_Lock": ("scrolllock",),
    **{f"F{number}": () for number in range(1, 13)},
    **{str(digit): (f"num{digit}", f"numpad{digit}", f"kp_{digit}") for digit in range(10)},
    # QEMU's and X's names of keys that make one character.
    "-": ("minus", "hyphen", "kp_subtract", "subtract"),
    "+": ("plus", "kp_add", "add"),
    "*": ("asterisk", "kp_multiply", "multiply"),
    "/": ("slash", "kp_divide", "divide"),
    ",": ("comma",),
    ".": ("dot", "period", "kp_decimal", "decimal"),
    "\\": ("backslash",),
    ";": ("semicolon",),
    ":": ("colon",),
    "'": ("apostrophe", "quote"),
    '"': ("quotedbl", "doublequote"),
    "=": ("equal", "equals"),
    "<": ("less",),
    ">": ("greater",),
    "[": ("bracket_left",),
    "]": ("bracket_right",),
    "(": ("parenleft",),
    ")": ("parenright",),
    "{": ("braceleft",),
    "}": ("braceright",),
    "`": ("grave_accent", "grave", "backtick"),
    "_": ("underscore",),
    "|": ("bar", "pipe"),
    "~": ("asciitilde", "tilde"),
    "^": ("asciicircum", "caret"),
    "!": ("exclam",),
    "?": ("question",),
    "@": ("at",),
    "#": ("numbersign", "hash"),
    "$": ("dollar",),
    "%": ("percent",),
    "&": ("ampersand",),
}  # fmt: skip
"""Canonical name -> its other spellings, in small letters. Capitals and blanks within a name never matter."""
NAMED = tuple(name for name in ALIASES if len(name) > 1)
"""Canonical names of the keys that make no printable character, space included."""
_BETWEEN = str.maketrans("", "", "_- ")
"""arrow_left, Arrow-Left and arrowleft are one spelling."""
_CANONICAL = {
    spelling.translate(_BETWEEN) if len(spelling) > 1 else spelling: name
    for name, others in ALIASES.items()
    for spelling in (name.lower(), *others)
}
_SIDES = ("left", "right", "l", "r")
_CHARACTERS = {" ": "space", "\n": "Return", "\t": "Tab"}
MAX_CHORD = 5


def canonical_key(name: str) -> str | None:
    """Canonical name of one key in any spelling, a character being its own; None for an unknown one."""
    if name in _CHARACTERS:
        return _CHARACTERS[name]
    if len(name) == 1 and name.isprintable():
        return name
    plain = name.lower().translate(_BETWEEN)
    return _CANONICAL.get(plain) or _without_side(plain)


def _without_side(plain: str) -> str | None:
    """The modifier of a name such as leftshift or lctrl."""
    found = (_CANONICAL.get(plain.removeprefix(side)) for side in _SIDES if plain.startswith(side))
    return next((name for name in found if name in MODIFIERS), None)


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


def key_list(value: object) -> tuple[str, ...]:
    """Canonical names of "ctrl+s", "ctrl s", ["ctrl", "s"] or ["ctrl+s"], in press order."""
    names = value if isinstance(value, (list, tuple)) else [value]
    if not all(isinstance(name, str) and name for name in names):
        raise ActionTextError("keys must be key names")
    return chord([part for name in names for part in _parts(str(name))])


def _parts(text: str) -> list[str]:
    """The names in one text: itself where it is a key, else what blanks, "+" or "-" separate."""
    text = text.strip() if len(text) > 1 else text
    if canonical_key(text) is not None:
        return [text]
    text = text.replace(" + ", "+").replace(",", " ")
    for separator in (" ", "+", "-"):
        if separator in text:
            parts = text.split() if separator == " " else list(split_chord(text, separator))
            return [part for one in parts for part in (_parts(one) if separator == " " else [one])]
    return [text]
