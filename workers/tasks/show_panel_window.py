"""Setup verb panel: a window of our own program from a spec, shown exactly where the spec says."""

import json
from typing import Any

from workers.tasks.task_desktop_contract import TaskDesktop
from workers.tasks.window_placement import FRAME_LEFT, FRAME_TOP, place, wait_focused, wait_painted

PROGRAM = "deskhand-panel"
HIGHLIGHT = "#1565c0"
"""The panel's own colour of a list's current row and of the frame of an entry that has the keyboard."""
ENTRY_FRAME = "#9aa3ad"
INSET = 8
"""Pixels from a widget's corner to a point that no frame and no text covers."""


def show_panel(spec: dict[str, Any], result_path: str, desktop: TaskDesktop) -> None:
    """Start the panel and return when every widget is painted in its place. Raises SetupError."""
    spec_path = result_path.removesuffix(".json") + ".spec.json"
    framed = spec | {"x": spec["x"] - FRAME_LEFT, "y": spec["y"] - FRAME_TOP}
    desktop.agent.put(spec_path, json.dumps(framed).encode())
    desktop.agent.launch([PROGRAM, spec_path, result_path])
    box = (spec["x"], spec["y"], spec["width"], spec["height"])
    window = wait_focused(desktop, spec["title"])
    if (window.x, window.y, window.width, window.height) != box:
        place(desktop, spec["title"], box)  # another theme or window manager
    wait_painted(desktop.console, painted_points(spec))


def painted_points(spec: dict[str, Any]) -> dict[tuple[int, int], str]:
    """Screen point -> colour that it has when its widget is drawn, for everything but labels.

    The entry that has the keyboard shows it by its frame; keys sent before that would be lost.
    """
    points: dict[tuple[int, int], str] = {}
    focused = first_focusable(spec["widgets"])
    for widget in spec["widgets"]:
        left, top = spec["x"] + widget["x"], spec["y"] + widget["y"]
        if widget["kind"] == "button" and widget.get("color"):
            points[left + INSET, top + INSET] = widget["color"]
        if widget["kind"] == "list" and widget.get("rows"):
            edge = widget["height"] * widget.get("selected", 0) // len(widget["rows"])
            points[left + widget["width"] - INSET, top + edge + INSET] = widget.get("color", HIGHLIGHT)
        if widget["kind"] == "entry":
            frame = HIGHLIGHT if widget["id"] == focused else ENTRY_FRAME
            points[left, top + widget["height"] // 2] = frame
    return points


def first_focusable(widgets: list[dict[str, Any]]) -> str | None:
    """Id of the widget that has the keyboard when the panel opens."""
    able = (w["id"] for w in widgets if w["kind"] != "label" and w.get("focusable", True))
    return next(able, None)
