"""The tree in few words: a line per widget with role, name, states and the point to click.

button "Save" 320,470
entry "Name" = "Ada" 512,233 focused
check-box "Bold" 90,12 checked
"""

from collections.abc import Callable

from training.observations.widget_tree import Widget, widgets_of

SHOWN_STATES = ("focused", "checked", "selected", "pressed", "expanded")
MAX_TEXT = 200
"""Characters of what stands in one widget."""
Place = Callable[[int, int], tuple[int, int]]
"""A screen pixel in the numbers that the policy writes."""


def short_list(xml: str, place: Place) -> str:
    """The usable widgets of a tree. Raises BadTree."""
    return "\n".join(_line(widget, place) for widget in widgets_of(xml) if widget.is_usable)


def _line(widget: Widget, place: Place) -> str:
    left, top, width, height = widget.box or (0, 0, 0, 0)
    x, y = place(left + width // 2, top + height // 2)
    name, text = _short(widget.name), _short(widget.text)
    words = [widget.role, f'"{name}"' if name else "", f'= "{text}"' if text and text != name else ""]
    states = [state for state in SHOWN_STATES if widget.has_state(state)]
    if not widget.has_state("enabled"):
        states.append("disabled")
    return " ".join(word for word in (*words, f"{x},{y}", ",".join(states)) if word)


def _short(text: str) -> str:
    """On one line, cut."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_TEXT else f"{line[:MAX_TEXT]}..."
