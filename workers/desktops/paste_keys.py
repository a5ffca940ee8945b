"""How programs of an X desktop paste."""


def paste_by(window_class: str) -> tuple[str, tuple[str, ...]]:
    """The selection that a program pastes, and its keys for that."""
    name = window_class.lower()
    if "xterm" in name:
        return "PRIMARY", ("shift", "Insert")
    return "CLIPBOARD", ("ctrl", "shift", "v") if "terminal" in name else ("ctrl", "v")
