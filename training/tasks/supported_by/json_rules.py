"""The rules of metric `check_json`: {key: path, method, ref}, with the methods that desktop-env 1.0.2 has.

Source: https://pypi.org/project/desktop-env/1.0.2, `_match_value_to_rule` of its metrics' utils. A rule that
can match nothing there (an unknown method, a broken pattern, `spreadsheet_range`, which no JSON value meets)
scored 0 whatever the agent did; here it is the task's fault and named when the task is judged.
"""

import operator
import re
from collections.abc import Callable, Iterator
from typing import Any

Match = Callable[[Any], bool]
"""Raises TypeError, AttributeError or ValueError for a value that cannot be compared."""
COMPARISONS = {name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}
FLAGS = {
    name: getattr(re, name)
    for name in ("A", "ASCII", "I", "IGNORECASE", "M", "MULTILINE", "S", "DOTALL", "X", "VERBOSE")
}
BOUNDS = {"t": operator.lt, "e": operator.le}
METHODS = "eq, ne, lt, le, gt, ge, re, re.FLAGS, approx:THRESHOLD, range.te, str_list_eq, str_set_eq"


def match_of(rule: Any) -> Match:
    """What decides whether a value meets the rule. Raises ValueError, which names method or ref."""
    if not isinstance(rule, dict) or not {"key", "method", "ref"} <= rule.keys():
        raise ValueError("a rule of check_json needs key, method and ref")
    if not isinstance(rule["key"], list | tuple):
        raise ValueError("key must be a list: the path to the value")
    method, ref = str(rule["method"]), rule["ref"]
    name, _, rest = method.partition(":" if method.startswith("approx") else ".")
    if method in COMPARISONS:
        return lambda value: bool(COMPARISONS[method](value, ref))
    if method in ("str_list_eq", "str_set_eq"):
        return _of_names(list if method == "str_list_eq" else set, ref)
    if name == "re":
        return _of_pattern(method, ref)
    if name == "approx":
        return _of_distance(method, rest, ref)
    if name == "range" and len(rest) == 2 and set(rest) <= set(BOUNDS):
        return _of_range(rest, ref)
    raise ValueError(f"check_json has no method {method!r}, only {METHODS}")


def _of_pattern(method: str, ref: Any) -> Match:
    flag = re.RegexFlag(0)
    for name in method.split(".")[1:]:
        if name not in FLAGS:
            raise ValueError(f"method {method!r}: {name!r} is no flag of a pattern")
        flag |= FLAGS[name]
    try:
        pattern = re.compile(ref, flag)
    except (re.error, TypeError, ValueError) as error:
        raise ValueError(f"ref is no pattern for method {method!r}: {error}") from error
    return lambda value: pattern.search(value) is not None


def _of_distance(method: str, threshold: str, ref: Any) -> Match:
    try:
        most, middle = float(threshold), float(ref)
    except (TypeError, ValueError) as error:
        raise ValueError(f"method {method!r} needs numbers: approx:0.5 and a ref") from error
    return lambda value: _is_number(value) and abs(float(value) - middle) <= most


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _of_range(bounds: str, ref: Any) -> Match:
    if not isinstance(ref, list | tuple) or len(ref) < 2:
        raise ValueError(f"ref of method 'range.{bounds}' must be [low, high]")
    low, high = BOUNDS[bounds[0]], BOUNDS[bounds[1]]
    return lambda value: bool(low(ref[0], value) and high(value, ref[1]))


def _of_names(container: type[list[str]] | type[set[str]], ref: Any) -> Match:
    if not isinstance(ref, list | tuple | str):
        raise ValueError("ref of methods str_list_eq and str_set_eq must be a list of names")
    return lambda value: container(value.strip("\"'").split(",")) == container(ref)


def json_rule_problems(rules: Any) -> Iterator[str]:
    """What is wrong with the rules of a `check_json`, each with its place."""
    if not isinstance(rules, dict):
        yield "must be an object with expect or unexpect"
        return
    for part in ("expect", "unexpect"):
        found = rules.get(part) or ()
        if not isinstance(found, list | tuple):
            yield f"{part} must be a list of rules"
            continue
        for index, rule in enumerate(found):
            try:
                match_of(rule)
            except ValueError as error:
                yield f"{part}[{index}]: {error}"
