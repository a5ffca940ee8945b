"""Panel specs: the windows that `deskhand-panel` shows, and the evaluator of their result."""

from dataclasses import dataclass, fields
from typing import Any

RESULT_FILE = "/home/user/.deskhand/result.json"
BACKGROUND = "#a9b4c0"
"""Mid-grey: white, black and every colour stand out from it at a quarter of the pixels."""


@dataclass(frozen=True, slots=True)
class Widget:
    """One thing in a panel; positions are pixels in the window."""

    id: str
    kind: str
    """button | label | entry | list"""
    x: int
    y: int
    width: int
    height: int
    text: str = ""
    color: str = ""
    rows: tuple[str, ...] = ()
    selected: int | None = None
    """List: row highlighted at the start, 0-based."""
    arrows_only: bool = False
    """List: only Up and Down move the row, and they wrap around."""
    focusable: bool = True
    """Button: can be reached and pressed by the keyboard."""

    def spec(self) -> dict[str, Any]:
        """The geometry, and what differs from the panel's own defaults."""
        needed = {"id", "kind", "x", "y", "width", "height"}
        spec: dict[str, Any] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name in needed or value != item.default:
                spec[item.name] = list(value) if isinstance(value, tuple) else value
        return spec


@dataclass(frozen=True, slots=True)
class Panel:
    """One window; x and y place its inside on the screen, whatever the window manager adds."""

    title: str
    x: int
    y: int
    width: int
    height: int
    widgets: tuple[Widget, ...]
    close_on: tuple[str, ...]

    def spec(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "x": self.x,
            "y": self.y,
            "width": self.width,
            "height": self.height,
            "background": BACKGROUND,
            "widgets": [widget.spec() for widget in self.widgets],
            "close_on": list(self.close_on),
        }

    def centre(self, widget: Widget, *, top: int = 0, height: int | None = None) -> dict[str, int]:
        """Screen pixels of the centre of `widget`, or of the band of it `top` pixels down."""
        height = widget.height if height is None else height
        return {
            "x": self.x + widget.x + widget.width // 2,
            "y": self.y + widget.y + top + height // 2,
        }


def panel_step(panel: Panel) -> dict[str, Any]:
    """Setup step that shows `panel` and waits until it is visible."""
    return {"type": "panel", "parameters": {"spec": panel.spec(), "result": RESULT_FILE}}


def panel_evaluator(expected: list[tuple[list[str], Any]]) -> dict[str, Any]:
    """Score 1 when every (path, value) holds in the panel's result. Waits for its last write."""
    return {
        "func": "check_json",
        "result": {"type": "vm_file", "path": RESULT_FILE, "dest": "result.json"},
        "expected": {
            "type": "rule",
            "rules": {"expect": [{"key": key, "method": "eq", "ref": value} for key, value in expected]},
        },
        "wait_s": 0.3,
    }
