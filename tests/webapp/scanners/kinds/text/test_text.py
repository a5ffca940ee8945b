"""Text patterns: what they find, and those that are refused."""

import re
import time

import pytest

from testing.scanned_turns import CLICK, run, typed
from webapp.lib.request_values import BadValue
from webapp.scanners.definition_schemas import read_definition
from webapp.scanners.kinds.text.linear_patterns import matches


@pytest.mark.parametrize(
    ("definition", "paid", "turn"),
    [
        ({"kind": "text", "pattern": r"(?i)lucky"}, run(CLICK, CLICK, said=("no", "A Lucky guess")), 1),
        ({"kind": "text", "pattern": "x", "where": "typed"}, run(typed("abc"), typed("xyz")), 1),
        ({"kind": "text", "pattern": "a", "min_turns": 2}, run(CLICK, CLICK, said=("a", "b")), None),
    ],
)
def test_it_finds_its_turn(definition, paid, turn):
    hit = read_definition(definition).find(paid)
    assert (None if hit is None else hit.turn) == turn


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kind": "text", "pattern": "("}, "missing )"),
        ({"kind": "text", "pattern": "(?=x)"}, "invalid perl operator"),
        ({"kind": "text", "pattern": "|".join(f"a[ab]{{{n}}}c" for n in range(900, 930))}, "too large"),
        ({"kind": "text", "pattern": r"\pL{200}"}, "pattern too large"),
        ({"kind": "text", "pattern": "(([ab]{30}){10}){5,9}c"}, "invalid repetition size: {5,9}"),
    ],
)
def test_a_definition_that_cannot_be_is_refused_by_its_field(values, message):
    with pytest.raises(BadValue, match="(?s)" + re.escape(message)):
        read_definition(values)


def test_nothing_is_found_in_nothing():
    assert read_definition({"kind": "text", "pattern": "a"}).find(run()) is None


def test_no_pattern_takes_long():
    """A backtracking engine needs 2 ** 40 steps for this."""
    began = time.process_time()
    assert not matches("(a+)+$", "a" * 40 + "b")
    assert time.process_time() - began < 5
