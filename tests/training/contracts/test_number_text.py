"""Numbers in words and digits: one rounding, one format, one minus sign."""

import pytest

from training.contracts.number_text import (
    counted,
    counted_of,
    fixed_text,
    rough_duration_text,
    share_text,
    short_text,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.825, "0.83"),
        (0.125, "0.13"),
        (-0.825, "−0.83"),
        (1204.5, "1,204.50"),
        (-0.001, "0.00"),
        (2.675, "2.68"),
    ],
)
def test_half_is_rounded_away_from_zero_on_the_digits_that_are_written(value: float, text: str):
    assert fixed_text(value) == text


def test_a_sign_stands_before_what_is_not_zero_as_it_is_shown():
    shown = [fixed_text(value, 2, signed=True) for value in (0.825, -0.5, 0.004, -0.004, float("nan"))]
    assert shown == ["+0.83", "−0.50", "0.00", "0.00", "nan"]


@pytest.mark.parametrize(
    ("fraction", "text"), [(0.125, "13 %"), (0.575, "58 %"), (1.0, "100 %"), (0.0, "0 %"), (0.285, "29 %")]
)
def test_a_share_is_rounded_as_any_number(fraction: float, text: str):
    assert share_text(fraction) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.2068, "0.207"),
        (1.0833, "1.08"),
        (9.996, "10"),
        (1204.4, "1,204"),
        (2206, "2,206"),
        (1_365_922, "1.37 M"),
        (999_999.0, "1.00 M"),
        (-0.01234, "−0.0123"),
        (0.000778, "0.000778"),
        (0, "0"),
    ],
)
def test_a_short_number_has_three_digits_that_count_and_no_exponent(value: float, text: str):
    assert short_text(value) == text


def test_one_has_a_noun_of_its_own():
    assert [counted(number, "message") for number in (0, 1, 2167)] == [
        "0 messages",
        "1 message",
        "2,167 messages",
    ]
    assert counted(1, "entry", "entries") == "1 entry"
    assert counted(3, "entry", "entries") == "3 entries"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (3, "10 s"),
        (44, "40 s"),
        (94, "2 min"),
        (676, "10 min"),
        (3500, "1 h"),
        (9000, "2 h 30 min"),
        (2e6, "23 days"),
    ],
)
def test_an_estimate_claims_no_seconds(seconds: float, text: str):
    assert rough_duration_text(seconds) == text


@pytest.mark.parametrize(
    ("number", "many", "text"),
    [
        (1, "messages", "1 message"),
        (1, "reports", "1 report"),
        (1, "entries", "1 entry"),
        (1, "trajectories", "1 trajectory"),
        (0, "messages", "0 messages"),
        (10_001, "entries", "10,000+ entries"),
    ],
)
def test_a_list_names_one_of_its_rows_in_the_singular(number: int, many: str, text: str):
    assert counted_of(number, many, 10_000) == text
