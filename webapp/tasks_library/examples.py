"""An example of every verb, check and action of a task, in the schema's words."""

from typing import Any

NOTE = {"type": "vm_file", "path": "/home/user/note.txt", "dest": "note.txt"}
FILES = {"type": "guest_files", "folder": "/home/user"}


def _rule(**rules: Any) -> dict[str, Any]:
    return {"type": "rule", "rules": rules}


SET_UP: dict[str, dict[str, Any]] = {
    "launch": {"command": ["mousepad", "/home/user/note.txt"]},
    "execute": {"command": ["mkdir", "-p", "/home/user/letters"]},
    "command": {"command": "date > /home/user/today.txt", "shell": True},
    "sleep": {"seconds": 1},
    "open": {"path": "/home/user/note.txt"},
    "activate_window": {"window_name": "Mousepad"},
    "close_window": {"window_name": "Mousepad"},
    "upload_file": {"files": [{"path": "/home/user/note.txt", "content": "one\n"}]},
    "insert_disc": {"files": [{"path": "note.txt", "content": "one\n"}], "label": "TASK"},
    "write_file": {"path": "/home/user/note.txt", "content": "one\n"},
    "panel": {"spec": {"kind": "buttons"}, "result": "/home/user/.deskhand/result.json"},
    "place_window": {"window_name": "Mousepad", "x": 40, "y": 60, "width": 400, "height": 260},
    "wait_color": {"x": 10, "y": 10, "color": "#ffffff"},
    "press_keys": {"chords": [["ctrl", "a"], ["Delete"]]},
}
"""Verb -> parameters."""

CHECKS: dict[str, dict[str, Any]] = {
    "compare_text_file": {
        "result": NOTE,
        "expected": {"type": "inline", "content": "blue hen\n"},
        "options": {"ignore_trailing_newlines": True},
    },
    "check_include_exclude": {"result": NOTE, "expected": _rule(include=["blue"], exclude=["red"])},
    "exact_match": {
        "result": {"type": "vm_command_line", "command": ["cat", "/home/user/answer.txt"]},
        "expected": _rule(expected="42\n"),
    },
    "check_json": {
        "result": {"type": "office_document", "path": "/home/user/letter.odt"},
        "expected": _rule(expect=[{"key": ["paragraphs", 0, "text"], "method": "eq", "ref": "Dear hen"}]),
    },
    "file_exists": {"result": FILES, "expected": _rule(path="note.txt", gone=["old.txt"])},
    "file_contains": {"result": NOTE, "expected": _rule(text="blue hen")},
    "setting_value": {
        "result": {"type": "guest_setting", "key": "/home/user/app.conf", "name": "theme"},
        "expected": _rule(value="dark"),
    },
    "window_open": {"result": {"type": "guest_windows"}, "expected": _rule(title="note.txt")},
    "process_running": {"result": {"type": "guest_processes"}, "expected": _rule(names=["galculator"])},
}
"""Metric -> the rest of one check."""

ACTIONS: dict[str, dict[str, Any]] = {
    "click": {"x": 120, "y": 44},
    "double_click": {"x": 120, "y": 44},
    "triple_click": {"x": 120, "y": 44},
    "right_click": {"x": 120, "y": 44},
    "middle_click": {"x": 120, "y": 44},
    "move": {"x": 120, "y": 44},
    "drag": {"x": 20, "y": 20, "to_x": 120, "to_y": 44},
    "scroll": {"x": 120, "y": 44, "scroll_y": 3},
    "type": {"text": "blue hen"},
    "paste": {"text": "blue hen"},
    "key": {"keys": ["ctrl", "s"]},
    "key_down": {"keys": ["shift"]},
    "key_up": {"keys": ["shift"]},
    "mouse_down": {"x": 120, "y": 44},
    "mouse_up": {"x": 160, "y": 44},
    "wait": {"seconds": 1},
    "terminate": {"status": "success"},
}
"""Kind of action -> its other fields."""


def examples() -> dict[str, dict[str, Any]]:
    """Field of the editor -> name -> what is added."""
    return {
        "config": {verb: {"type": verb, "parameters": found} for verb, found in SET_UP.items()},
        "evaluator": {metric: {"func": metric, **found} for metric, found in CHECKS.items()},
        "oracle": {kind: {"kind": kind, **found} for kind, found in ACTIONS.items()},
    }
