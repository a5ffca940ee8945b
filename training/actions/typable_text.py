"""What no keyboard has: control characters, and halves of characters."""

import unicodedata

TYPED_AS_KEYS = "\n\r\t\b"
"""Control characters that are keys: Return, Tab, BackSpace."""


def typing_mistake(text: str) -> str | None:
    """Why a text cannot be typed on any desktop, naming the character; None when it can."""
    for char in text:
        if char not in TYPED_AS_KEYS and unicodedata.category(char) in ("Cc", "Cs"):
            what = "half of a character" if "\ud800" <= char <= "\udfff" else "a control character"
            return f"U+{ord(char):04X} cannot be typed: it is {what}"
    return None
