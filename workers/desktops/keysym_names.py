"""X's names of keys; the canonical names are in `training.actions.key_names`."""

from training.actions.key_names import canonical_key

X_NAMES = {
    "ctrl": "Control_L",
    "shift": "Shift_L",
    "alt": "Alt_L",
    "super": "Super_L",
    "Page_Up": "Prior",
    "Page_Down": "Next",
}
"""Canonical names that X calls otherwise; the others are keysym names already."""
TEXT_CONTROL = {"\n": "Return", "\r": "Return", "\t": "Tab", "\b": "BackSpace"}


def x_name(name: str) -> str:
    """X keysym name of a key in any usual spelling, a character being its own; unknown ones stay."""
    canonical = canonical_key(name)
    return name if canonical is None else X_NAMES.get(canonical, canonical)
