"""Values out of requests: numbers, JSON and text, read strictly and in one place.

Every reader raises BadValue, which names the field; views let it pass and the edge answers 400 with it.
`int` accepts "²" and takes seconds for a long number, `json.loads` accepts NaN and ends the thread's stack on
a deep text: no view or consumer calls them on what a browser or a script sent.
"""

import json
import math
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import Any

from django.core.exceptions import BadRequest
from django.http import HttpRequest
from django.http.request import RawPostDataException

from training.untrusted.json_keys import with_unique_keys

MAX_WHOLE = 2**63 - 1
"""What a column of either database holds, and so the largest id."""
MAX_JSON_DEPTH = 32
WHOLE = re.compile(r"-?[0-9]{1,19}")
DECIMAL = re.compile(r"[+-]?([0-9]{1,19}(\.[0-9]{0,25})?|\.[0-9]{1,25})([eE][+-]?[0-9]{1,3})?")
SURROGATE = re.compile("[\ud800-\udfff]")


class BadValue(BadRequest, ValueError):
    """Raised when a value of a request cannot be what its field holds; `field` and `problem` say which."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}" if field else problem)
        self.field = field
        self.problem = problem


# --- numbers -----------------------------------------------------------------------------------------


def whole_number(text: str, field: str, *, low: int = 0, high: int = MAX_WHOLE) -> int:
    """The whole number that `text` is, from `low` to `high`."""
    plain = text.strip()
    value = int(plain) if WHOLE.fullmatch(plain) else None
    if value is None or not low <= value <= high:
        ends = f" from {low} to {high}" if high < MAX_WHOLE else "" if low < 0 else f", {low} or more"
        raise BadValue(field, f"'{shortened(plain)}' is not a whole number{ends}")
    return value


def row_id(text: str) -> int | None:
    """The id that `text` is; None for anything else: what a filter drops, or no row can have."""
    return int(text) if WHOLE.fullmatch(text) and 0 <= int(text) <= MAX_WHOLE else None


def whole_range(text: str) -> tuple[int, int] | None:
    """(first, last) that "12" or "12-40" means; None for anything else, which a filter drops."""
    left, _, right = text.replace(" ", "").partition("-")
    first, last = row_id(left), row_id(right or left)
    return None if first is None or last is None else (min(first, last), max(first, last))


def whole_numbers(text: str, field: str, *, at_most: int) -> list[int]:
    """Numbers separated by commas; "" = none."""
    parts = text.split(",") if text else []
    if len(parts) > at_most:
        raise BadValue(field, f"at most {at_most} numbers, these are {len(parts)}")
    return [whole_number(part, field) for part in parts]


def decimal_number(text: str, field: str, *, low: float = -math.inf, high: float = math.inf) -> float:
    """The finite number that `text` is, from `low` to `high`."""
    plain = text.strip()
    value = float(plain) if DECIMAL.fullmatch(plain) else math.nan
    if not (math.isfinite(value) and low <= value <= high):
        ends = f" from {low:.10g} to {high:.10g}" if math.isfinite(high - low) else ""
        raise BadValue(field, f"'{shortened(plain)}' is not a number{ends}")
    return value


# --- JSON --------------------------------------------------------------------------------------------


def read_json(text: str | bytes, field: str) -> Any:
    """A JSON value whose numbers, text and depth every database and browser can hold.

    Editors of Windows begin a file with a byte order mark.
    """
    try:
        decoded = text.removeprefix(BOM_UTF8).decode() if isinstance(text, bytes) else text
    except UnicodeDecodeError as error:
        raise BadValue(field, f"not UTF-8 (byte {error.start})") from error
    try:
        value = json.loads(decoded, object_pairs_hook=with_unique_keys)
    except RecursionError as error:
        raise BadValue(field, f"nested deeper than {MAX_JSON_DEPTH} levels") from error
    except ValueError as error:
        raise BadValue(field, f"not JSON ({shortened(str(error), 120)})") from error
    check_plain(value, field)
    return value


def json_object(text: str | bytes, field: str) -> dict[str, Any]:
    value = read_json(text, field)
    if not isinstance(value, dict):
        raise BadValue(field, "not a JSON object")
    return value


def json_body(request: HttpRequest) -> dict[str, Any]:
    """The object that a script sent; an empty body is an empty object."""
    try:
        body = request.body
    except RawPostDataException as error:
        # A middleware, such as the check of the CSRF token, has read the parts of a form.
        raise BadValue("body", "a multipart form; send a JSON object") from error
    return json_object(body, "body") if body else {}


def check_plain(value: Any, field: str) -> None:
    """Raise BadValue where a number or a text inside `value` could not be stored."""
    for path, leaf, depth in _leaves(value, field):
        if depth > MAX_JSON_DEPTH:
            raise BadValue(field, f"nested deeper than {MAX_JSON_DEPTH} levels")
        if isinstance(leaf, str):
            check_text(leaf, path)
        elif isinstance(leaf, float) and not math.isfinite(leaf):
            raise BadValue(path, "not a finite number")
        elif isinstance(leaf, int) and abs(leaf) > MAX_WHOLE:
            raise BadValue(path, f"larger than {MAX_WHOLE}")


def _leaves(value: Any, field: str) -> Iterator[tuple[str, Any, int]]:
    """(path, value or key, depth) of everything in it; without recursion, and no deeper than is allowed."""
    waiting: list[tuple[str, Any, int]] = [(field, value, 0)]
    while waiting:
        path, item, depth = waiting.pop()
        if depth <= MAX_JSON_DEPTH and isinstance(item, dict):
            for key, inner in item.items():
                yield path, key, depth
                waiting.append((f"{path}.{shortened(key)}", inner, depth + 1))
        elif depth <= MAX_JSON_DEPTH and isinstance(item, list):
            waiting += [(f"{path}[{place}]", inner, depth + 1) for place, inner in enumerate(item)]
        else:
            yield path, item, depth


# --- text --------------------------------------------------------------------------------------------


def check_text(text: str, field: str) -> None:
    """Raise BadValue for what no text column holds: PostgreSQL has no NUL, UTF-8 no half of a pair."""
    if "\x00" in text:
        raise BadValue(field, "holds the character NUL")
    if not text.isascii() and SURROGATE.search(text):
        raise BadValue(field, "holds half of a surrogate pair")


def shortened(value: object, length: int = 40) -> str:
    """`value` as it can stand in a message."""
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else str(value)
    return text if len(text) <= length else f"{text[:length]}…"
