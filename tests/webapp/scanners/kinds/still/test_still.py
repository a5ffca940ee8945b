"""Screens that stand still."""

import pytest

from testing.scanned_turns import CLICK, run
from webapp.scanners.definition_schemas import read_definition
from webapp.scanners.shipped import SHIPPED


@pytest.mark.parametrize(
    ("name", "paid", "turn"),
    [
        ("still-screen", run(*[CLICK] * 5, frames=("a", "b", "b", "b", "b")), 1),
        ("still-screen", run(*[CLICK] * 4, frames=("a", "b", "b", "b")), None),
        ("still-screen", run(*[CLICK] * 5, frames=("", "", "", "", "")), None),
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
    assert read_definition({"kind": "still"}).find(run()) is None
