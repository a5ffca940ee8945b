"""Rules of Deskhand: what each finds."""

from dataclasses import replace

import pytest

from testing.scanned_turns import CLICK, FAILURE, SUCCESS, WAIT, run, typed
from webapp.lib.request_values import BadValue
from webapp.scanners.definition_schemas import read_definition
from webapp.scanners.kinds.rule.rules import RULES
from webapp.scanners.shipped import SHIPPED


@pytest.mark.parametrize(
    ("name", "paid", "turn"),
    [
        ("giving-up-early", run(CLICK, FAILURE), 1),
        ("giving-up-early", run(CLICK, FAILURE, max_turns=3), None),
        ("giving-up-early", run(CLICK, SUCCESS, said=("", "This is impossible.")), 1),
        ("giving-up-early", run(CLICK, SUCCESS, said=("I cannot see it", "Done.")), None),
        ("garbled-text", run(CLICK, WAIT, said=("fine", "the " * 20)), 1),
        ("garbled-text", run(CLICK, typed("\ufffd\ufffdab")), 1),
        ("garbled-text", run(CLICK, said=("Grüße, 你好, ok? No, no, no, no, no, no.",)), None),
        ("garbled-text", run(CLICK, said=('{"action":"key","keys":["Return"]}',)), None),
        ("leaving-the-task", run(CLICK, typed("https://news.example/x")), 1),
        ("leaving-the-task", run(typed("https://a.example/x"), instruction="Open https://A.example"), None),
        ("leaving-the-task", run(typed("ls; sudo reboot")), 0),
        ("leaving-the-task", run(typed("rm old.txt"), instruction="Delete old.txt with rm"), None),
        ("unseen-reward", run(CLICK, WAIT, paid=(0.2, 0.0), changed=False), 0),
        ("unseen-reward", run(CLICK, CLICK, frames=("a", "a"), changed=False, reward=1.0), -1),
        ("unseen-reward", run(CLICK, CLICK, frames=("a", "b"), changed=None, reward=1.0), None),
        ("unseen-reward", run(CLICK, CLICK, frames=("a", "a"), changed=False, reward=0.0), None),
        ("lost-by-one-turn", replace(run(CLICK, WAIT), mistake_turn=1), 1),
        ("lost-by-one-turn", run(CLICK, WAIT), None),
    ],
)
def test_a_shipped_scanner_finds_its_turn(name, paid, turn):
    """-1: found, in no turn in particular."""
    hit = SHIPPED[name].definition.find(paid)
    assert (hit is not None) == (turn is not None)
    if hit is not None:
        assert hit.turn == (None if turn == -1 else turn)
        assert hit.note


@pytest.mark.parametrize("rule", RULES)
def test_nothing_is_found_in_nothing(rule):
    assert read_definition({"kind": "rule", "rule": rule}).find(run()) is None


def test_every_rule_is_shipped_as_a_scanner():
    definitions = [one.definition for one in SHIPPED.values()]
    assert {one.rule for one in definitions if one.kind == "rule"} == set(RULES)


def test_an_unknown_rule_is_refused():
    with pytest.raises(BadValue, match="rule: known ones: gave-up-early"):
        read_definition({"kind": "rule", "rule": "y"})
