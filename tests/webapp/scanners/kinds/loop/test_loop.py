"""Repeated actions."""

import pytest

from testing.scanned_turns import CLICK, OTHER, run
from webapp.scanners.definition_schemas import read_definition
from webapp.scanners.shipped import SHIPPED


@pytest.mark.parametrize(
    ("name", "paid", "turn"),
    [
        ("loops", run(OTHER, CLICK, CLICK, CLICK), 1),
        ("loops", run(CLICK, OTHER, CLICK, OTHER, CLICK, OTHER), 0),
        ("loops", run(OTHER, CLICK, CLICK), None),
        ("loops", run(CLICK, None, CLICK, None, CLICK, None), None),
    ],
)
def test_a_shipped_scanner_finds_its_turn(name, paid, turn):
    """-1: found, in no turn in particular."""
    hit = SHIPPED[name].definition.find(paid)
    assert (hit is not None) == (turn is not None)
    if hit is not None:
        assert hit.turn == (None if turn == -1 else turn)
        assert hit.note


def test_nothing_is_found_in_nothing():
    assert read_definition({"kind": "loop"}).find(run()) is None
