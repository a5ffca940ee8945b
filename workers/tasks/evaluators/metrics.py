"""Pure comparisons: (result, expected, options) -> score in [0, 1].

`result` comes from the desktop, so nothing about it is an error; `expected` comes from the task, so a
wrong one is (ValueError).
"""

import json
import re
from collections.abc import Callable, Sequence
from io import StringIO
from typing import Any

from training.tasks.supported_by.json_rules import match_of
from workers.tasks.evaluators.keyboard_task_checkers import CHECKERS

Options = dict[str, Any]


def text_of(value: Any) -> str | None:
    """Text of a file or a command's output; None when there is none or it is not text."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return None
    return value if isinstance(value, str) else None


def exact_match(result: Any, expected: Any, options: Options) -> float:
    """The text equals rules["expected"]."""
    wanted = _rules(expected, "expected")["expected"]
    return float((text_of(result) if isinstance(result, bytes) else result) == wanted)


def check_include_exclude(result: Any, expected: Any, options: Options) -> float:
    """Every string of rules["include"] is in the text and none of rules["exclude"]."""
    rules = _rules(expected)
    include, exclude = rules.get("include", []), rules.get("exclude", [])
    text = text_of(result)
    if text is None:
        return 0.0
    return float(all(part in text for part in include) and not any(part in text for part in exclude))


def compare_text_file(result: Any, expected: Any, options: Options) -> float:
    """Both files hold the same text, up to the options. CR LF and CR end a line as LF does."""
    wanted = text_of(expected)
    if wanted is None:
        raise ValueError("compare_text_file expects a file or inline content")
    text = text_of(result)
    if text is None:
        return 0.0
    return float(_normal(text, options) == _normal(wanted, options))


def _normal(text: str, options: Options) -> str:
    text = StringIO(text, newline=None).read()
    if options.get("ignore_trailing_newlines"):
        text = text.rstrip("\n")
    if options.get("ignore_blanks"):
        text = re.sub(r"\s+", " ", text).strip()
    return text.lower() if options.get("ignore_case") else text


def check_json(result: Any, expected: Any, options: Options) -> float:
    """Every rule of rules["expect"] holds and none of rules["unexpect"].

    A rule that cannot compare what is there holds in neither list.
    """
    rules = _rules(expected)
    expect, unexpect = (
        [(item, match_of(item)) for item in rules.get(part) or ()] for part in ("expect", "unexpect")
    )
    text = text_of(result)
    try:
        document = json.loads(text or "")
        return float(
            all(match(_value_at(document, rule["key"])) for rule, match in expect)
            and not any(match(_value_at(document, rule["key"], or_none=True)) for rule, match in unexpect)
        )
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError):
        return 0.0


def _value_at(document: Any, path: Sequence[Any], *, or_none: bool = False) -> Any:
    for key in path:
        try:
            document = document[key]
        except (KeyError, TypeError):
            if or_none:
                return None
            raise
    return document


def _rules(expected: Any, *needed: str) -> dict[str, Any]:
    if not isinstance(expected, dict) or not set(needed) <= expected.keys():
        raise ValueError("expected must be a rule" + (f" with {', '.join(needed)}" if needed else ""))
    return expected


METRICS: dict[str, Callable[[Any, Any, Options], float]] = {
    "exact_match": exact_match,
    "compare_text_file": compare_text_file,
    "check_include_exclude": check_include_exclude,
    "check_json": check_json,
    **CHECKERS,
}
