"""Keysym numbers of VNC (RFC 6143, 7.5.4) -> characters, canonical names of `training.actions.key_names`."""

MODIFIERS = {
    0xFFE1: "shift", 0xFFE2: "shift", 0xFFE3: "ctrl", 0xFFE4: "ctrl", 0xFFE7: "super", 0xFFE8: "super",
    0xFFE9: "alt", 0xFFEA: "alt", 0xFFEB: "super", 0xFFEC: "super",
}  # fmt: skip
LEVEL_SHIFTS = frozenset({0xFE03, 0xFE11, 0xFF7E})
"""AltGr and its kin only choose the character, which arrives as a keysym of its own."""
NAMES = {
    0xFF08: "BackSpace", 0xFF09: "Tab", 0xFE20: "Tab", 0xFF0D: "Return", 0xFF8D: "Return", 0xFF13: "Pause",
    0xFF14: "Scroll_Lock", 0xFF1B: "Escape", 0xFF50: "Home", 0xFF51: "Left", 0xFF52: "Up", 0xFF53: "Right",
    0xFF54: "Down", 0xFF55: "Page_Up", 0xFF56: "Page_Down", 0xFF57: "End", 0xFF61: "Print", 0xFF63: "Insert",
    0xFF67: "Menu", 0xFF7F: "Num_Lock", 0xFFE5: "Caps_Lock", 0xFFFF: "Delete",
    0xFF95: "Home", 0xFF96: "Left", 0xFF97: "Up", 0xFF98: "Right", 0xFF99: "Down", 0xFF9A: "Page_Up",
    0xFF9B: "Page_Down", 0xFF9C: "End", 0xFF9E: "Insert", 0xFF9F: "Delete",
    **{0xFFBE + number: f"F{number + 1}" for number in range(12)},
}  # fmt: skip
KEYPAD = {
    0xFFAA: "*",
    0xFFAB: "+",
    0xFFAC: ",",
    0xFFAD: "-",
    0xFFAE: ".",
    0xFFAF: "/",
    0xFFBD: "=",
    0xFF80: " ",
}
KEYPAD |= {0xFFB0 + digit: str(digit) for digit in range(10)}
# Keysyms older than Unicode have the byte of a national character set behind the number of the set.
CHARACTER_SETS = {
    0x01: "iso8859_2", 0x02: "iso8859_3", 0x03: "iso8859_4", 0x05: "iso8859_6", 0x06: "koi8_r",
    0x07: "iso8859_7", 0x0C: "iso8859_8",
}  # fmt: skip
SPECIAL = {
    0x20AC: "€",
    0x0AC9: "™",
    0x0AAA: "–",
    0x0AA9: "—",
    0x0AD0: "‘",
    0x0AD1: "’",
    0x0AD2: "“",
    0x0AD3: "”",
}
UNICODE = 0x01000000


def character(keysym: int) -> str | None:
    """The printable character of a keysym; None for keys that have none."""
    if 0x20 <= keysym <= 0x7E or 0xA0 <= keysym <= 0xFF:
        return chr(keysym)
    if UNICODE < keysym <= UNICODE | 0x10FFFF:
        found = chr(keysym & 0xFFFFFF)
        return found if found.isprintable() else None
    if keysym in KEYPAD or keysym in SPECIAL:
        return KEYPAD.get(keysym) or SPECIAL[keysym]
    charset = CHARACTER_SETS.get(keysym >> 8)
    if charset is None:
        return None
    found = bytes([keysym & 0xFF]).decode(charset, errors="ignore")
    return found if found.isprintable() and found else None


def key_name(keysym: int) -> str | None:
    """The name of a key that makes no character; None for one that we cannot name."""
    return NAMES.get(keysym)
