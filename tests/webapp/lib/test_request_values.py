"""Values of requests: what a reader takes, what it refuses, and that it always names the field."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webapp.lib.request_values import (
    MAX_WHOLE,
    BadValue,
    decimal_number,
    json_object,
    read_json,
    row_id,
    whole_number,
    whole_numbers,
    whole_range,
)

NO_WHOLE_NUMBERS = [
    "",
    " ",
    "²",
    "٣",
    "1.0",
    "1e3",
    "0x10",
    "1_000",
    "--1",
    "+1",
    "9" * 20,
    "9" * 5000,
    "nan",
    "-1",
]
NO_DECIMALS = ["", "nan", "inf", "-inf", "1e999", "1_0", "0x1p3", "²", "9" * 5000, "1e", ".", "1,5"]


@pytest.mark.parametrize("text", NO_WHOLE_NUMBERS)
def test_a_whole_number_is_ascii_digits_in_range(text):
    with pytest.raises(BadValue, match="^step: .* is not a whole number, 0 or more$") as refused:
        whole_number(text, "step")
    assert len(str(refused.value)) < 120
    assert row_id(text) is None


def test_a_range_is_one_number_or_two_in_either_order():
    assert [whole_range(text) for text in ("12", "12-40", "40 - 12")] == [(12, 12), (12, 40), (12, 40)]
    assert [whole_range(text) for text in ("", "-", "-3", "a-b", "1-2-3", "²")] == [None] * 6


def test_whole_numbers_have_their_bounds():
    assert whole_number(" -3 ", "priority", low=-100, high=100) == -3
    assert whole_number(str(MAX_WHOLE), "id") == row_id(str(MAX_WHOLE)) == MAX_WHOLE
    with pytest.raises(BadValue, match="priority: '101' is not a whole number from -100 to 100"):
        whole_number("101", "priority", low=-100, high=100)
    assert whole_numbers("3,4", "ids", at_most=2) == [3, 4]
    with pytest.raises(BadValue, match="ids: at most 2 numbers, these are 3"):
        whole_numbers("3,4,5", "ids", at_most=2)


@pytest.mark.parametrize("text", NO_DECIMALS)
def test_a_decimal_number_is_finite(text):
    with pytest.raises(BadValue, match="^temperature: "):
        decimal_number(text, "temperature")


def test_the_range_of_a_decimal_is_written_out():
    with pytest.raises(BadValue, match="price: '-1' is not a number from 0 to 1000000$"):
        decimal_number("-1", "price", low=0, high=1e6)


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e9, max_value=1e9))
@settings(max_examples=100)
def test_every_usual_float_is_read_back(value):
    assert decimal_number(f"{value:.12f}", "x") == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "body: not JSON"),
        ("[" * 100_000, "body: nested deeper than 32 levels"),
        ("[" * 40 + "]" * 40, "body: nested deeper than 32 levels"),
        ('{"a": NaN}', "body.a: not a finite number"),
        ('{"a": [1e400]}', r"body.a\[0\]: not a finite number"),
        ('{"a": -Infinity}', "body.a: not a finite number"),
        ('{"a": ' + "9" * 30 + "}", "body.a: larger than"),
        ("9" * 5000, "body: not JSON"),
        ('{"b": {"a": 1, "a": 1}}', "body: not JSON .key 'a' is there twice"),
        ('{"a": "\\ud800"}', "body.a: holds half of a surrogate pair"),
        ('{"\\u0000": 1}', "body: holds the character NUL"),
        (b'{"a": "\xff"}', "body: not UTF-8"),
        ('{"a": 1}'.encode("utf-16"), "body: not UTF-8"),
    ],
)
def test_json_that_cannot_be_stored_is_refused_where_it_stands(text, problem):
    with pytest.raises(BadValue, match=problem) as refused:
        read_json(text, "body")
    assert len(str(refused.value)) < 300


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


@given(VALUES)
@settings(max_examples=200)
def test_json_is_read_as_it_was_or_refused(value):
    text = json.dumps(value)
    try:
        found = read_json(text, "body")
    except BadValue:
        return
    assert found == value
    found_text = json.dumps(found, allow_nan=False)
    found_text.encode()
    assert "\\u0000" not in found_text.replace("\\\\", "")


def test_an_object_is_asked_for():
    with pytest.raises(BadValue, match="body: not a JSON object"):
        json_object("[1]", "body")


def test_a_byte_order_mark_is_no_part_of_the_json():
    assert read_json(b'\xef\xbb\xbf{"a": 1}\r\n', "body") == {"a": 1}
    with pytest.raises(BadValue, match="not JSON"):
        read_json(b"\xef\xbb\xbf\xef\xbb\xbf{}", "body")
