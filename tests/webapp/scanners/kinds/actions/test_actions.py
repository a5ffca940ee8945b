"""Sequences of actions."""

import re

import pytest

from testing.scanned_turns import CLICK, WAIT, run, typed
from webapp.lib.request_values import BadValue
from webapp.scanners.definition_schemas import read_definition


@pytest.mark.parametrize(
    ("definition", "paid", "turn"),
    [
        ({"kind": "actions", "steps": ["click", "any", "type"]}, run(WAIT, CLICK, WAIT, typed("a")), 1),
        ({"kind": "actions", "steps": ["wait"], "times": 3}, run(WAIT, WAIT, CLICK, WAIT), None),
    ],
)
def test_it_finds_its_turn(definition, paid, turn):
    hit = read_definition(definition).find(paid)
    assert (None if hit is None else hit.turn) == turn


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kind": "actions", "steps": ["fly"]}, "'fly' is no kind of action"),
    ],
)
def test_a_definition_that_cannot_be_is_refused_by_its_field(values, message):
    with pytest.raises(BadValue, match="(?s)" + re.escape(message)):
        read_definition(values)


def test_nothing_is_found_in_nothing():
    assert read_definition({"kind": "actions", "steps": ["any"]}).find(run()) is None
