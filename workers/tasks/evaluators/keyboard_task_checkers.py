"""The five checkers of keyboard tasks: (state, rules, options) -> 0, 0.2, 0.5 or 1.

1 is the whole task, 0.5 the right thing with something wrong about it, 0.2 a step towards it; a desktop that
was not touched scores 0. The state comes from the guest, so nothing about it is an error; the rules come from
the task, so a wrong one is (ValueError).
"""

import posixpath
import re
from collections.abc import Callable
from typing import Any

WHOLE, FLAWED, BEGUN, NOTHING = 1.0, 0.5, 0.2, 0.0
Options = dict[str, Any]


def process_running(state: Any, rules: Any, options: Options) -> float:
    """A program runs. `names`: what it may be called; `unwanted`: what must not run besides;
    `related`: other programs, whose start is a first step; `count`: how many of it (1)."""
    wanted = _names(_rules(rules, "names")["names"])
    running = [_plain(name) for name in state]
    number = sum(name in wanted for name in running)
    if number >= int(rules.get("count", 1)) and not _names(rules.get("unwanted", ())) & set(running):
        return WHOLE
    if number:
        return FLAWED
    return BEGUN if _names(rules.get("related", ())) & set(running) else NOTHING


def window_open(state: Any, rules: Any, options: Options) -> float:
    """A window whose title contains `title` is open and in front. `related`: titles of other windows."""
    title = str(_rules(rules, "title")["title"]).lower()
    found = [window for window in state if title in window["title"].lower()]
    if any(window["active"] for window in found):
        return WHOLE
    if found:
        return FLAWED
    related = [str(part).lower() for part in rules.get("related", ())]
    titles = [window["title"].lower() for window in state]
    return BEGUN if any(part in text for part in related for text in titles) else NOTHING


def file_exists(state: Any, rules: Any, options: Options) -> float:
    """`path` is there as a file (`folder`: as a folder), all of `kept` too, and nothing of `gone`.

    Half for a leftover, a loss or the wrong kind; a first step for the right name in the wrong place or
    a name that differs in case or ending. What was there at first (`before`, `kept`, `gone`) counts nothing.
    """
    path = str(_rules(rules, "path")["path"])
    there = {entry["path"].lower(): bool(entry["folder"]) for entry in state}
    gone = {str(item).lower() for item in rules.get("gone", ())}
    kept = {str(item).lower() for item in rules.get("kept", ())}
    old = gone | kept | {str(item).lower() for item in rules.get("before", ())}
    if path.lower() in there:
        is_right_kind = there[path.lower()] == bool(rules.get("folder", False))
        return WHOLE if is_right_kind and kept <= there.keys() and not gone & there.keys() else FLAWED
    stem = _stem(path)
    return BEGUN if any(_stem(other) == stem for other in there.keys() - old) else NOTHING


def file_contains(state: Any, rules: Any, options: Options) -> float:
    """A file holds exactly `text`; half when that is in there in some form. `before`: what it held at first.

    Line ends and blanks at the ends of lines never matter.
    """
    wanted = _lines(str(_rules(rules, "text")["text"]))
    text = decoded(state)
    if text is None or ("before" in rules and _lines(text) == _lines(str(rules["before"]))):
        return NOTHING
    if _lines(text) == wanted:
        return WHOLE
    return FLAWED if _collapsed("\n".join(wanted)) in _collapsed(text) else BEGUN


def setting_value(state: Any, rules: Any, options: Options) -> float:
    """A setting has `value`; half for another new value, a first step for its key alone.

    `before`: the value at first (no value when left out); `had_key`: its key was there at first.
    """
    wanted, value = str(_rules(rules, "value")["value"]), state["value"]
    if value == wanted:
        return WHOLE
    if value is not None:
        return FLAWED if value != rules.get("before") else NOTHING
    return BEGUN if state["key"] and not rules.get("had_key", False) else NOTHING


def decoded(state: Any) -> str | None:
    """Text of a file in one of the encodings that Windows programs write; None without a file."""
    if not isinstance(state, bytes):
        return state if isinstance(state, str) else None
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig")):
        if state.startswith(mark):
            return state.decode(encoding, errors="replace")
    try:
        return state.decode()
    except UnicodeDecodeError:
        return state.decode("cp1252", errors="replace")


def _rules(rules: Any, needed: str) -> dict[str, Any]:
    if not isinstance(rules, dict) or needed not in rules:
        raise ValueError(f"expected must be a rule with {needed}")
    return rules


def _plain(name: str) -> str:
    return name.strip().lower().removesuffix(".exe")


def _names(names: Any) -> set[str]:
    return {_plain(str(name)) for name in names}


def _stem(path: str) -> str:
    """The name alone: no folder, no endings ("plan" of "a/Plan.txt.txt")."""
    return posixpath.basename(path.lower()).split(".")[0]


def _lines(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _collapsed(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip().lower()


CHECKERS: dict[str, Callable[[Any, Any, Options], float]] = {
    "process_running": process_running,
    "window_open": window_open,
    "file_exists": file_exists,
    "file_contains": file_contains,
    "setting_value": setting_value,
}
