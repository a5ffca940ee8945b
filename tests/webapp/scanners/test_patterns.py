"""What patterns and shipped rules find, and what they leave alone."""

import time

import pytest

from webapp.lib.request_values import BadValue
from webapp.scanners.definition_schemas import read_definition
from webapp.scanners.linear_patterns import matches
from webapp.scanners.patterns import find
from webapp.scanners.shipped import SHIPPED
from webapp.scanners.shipped_rules import RULES
from webapp.scanners.transcripts import Paid, Transcript, TranscriptTurn

CLICK = {"kind": "click", "x": 100, "y": 100}
OTHER = {"kind": "click", "x": 400, "y": 300}
WAIT = {"kind": "wait", "seconds": 1}
FAILURE = {"kind": "terminate", "status": "failure"}
SUCCESS = {"kind": "terminate", "status": "success"}


def typed(text):
    return {"kind": "type", "text": text}


def run(*actions, said=(), frames=(), changed=None, paid=(), reward=0.0, max_turns=20, instruction="Do it"):
    turns = tuple(
        TranscriptTurn(
            index=index,
            frame=frames[index] if frames else f"frame {index}",
            screen_text="",
            said=said[index] if said else "",
            action=action,
            errors="",
            screen_changed=changed,
        )
        for index, action in enumerate(actions)
    )
    transcript = Transcript(1, instruction, turns, frames[-1] if frames else "last", max_turns, True)
    return Paid(transcript, reward, tuple(paid) or (0.0,) * len(turns))


def of(name):
    return SHIPPED[name].definition


FOUND = [
    ("loops", run(OTHER, CLICK, CLICK, CLICK), 1),
    ("loops", run(CLICK, OTHER, CLICK, OTHER, CLICK, OTHER), 0),
    ("loops", run(OTHER, CLICK, CLICK), None),
    ("loops", run(CLICK, None, CLICK, None, CLICK, None), None),
    ("still-screen", run(*[CLICK] * 5, frames=("a", "b", "b", "b", "b")), 1),
    ("still-screen", run(*[CLICK] * 4, frames=("a", "b", "b", "b")), None),
    ("still-screen", run(*[CLICK] * 5, frames=("", "", "", "", "")), None),
    ("giving-up-early", run(CLICK, FAILURE), 1),
    ("giving-up-early", run(CLICK, FAILURE, max_turns=3), None),
    ("giving-up-early", run(CLICK, SUCCESS, said=("", "This is impossible.")), 1),
    ("giving-up-early", run(CLICK, SUCCESS, said=("I cannot see it", "Done.")), None),
    ("garbled-text", run(CLICK, WAIT, said=("fine", "the " * 20)), 1),
    ("garbled-text", run(CLICK, typed("\ufffd\ufffdab")), 1),
    ("garbled-text", run(CLICK, said=("Grüße, 你好, ok? No, no, no, no, no, no.",)), None),
    ("leaving-the-task", run(CLICK, typed("https://news.example/x")), 1),
    ("leaving-the-task", run(typed("https://news.example/x"), instruction="Open https://NEWS.example"), None),
    ("leaving-the-task", run(typed("ls; sudo reboot")), 0),
    ("leaving-the-task", run(typed("rm old.txt"), instruction="Delete old.txt with rm"), None),
    ("unseen-reward", run(CLICK, WAIT, paid=(0.2, 0.0), changed=False), 0),
    ("unseen-reward", run(CLICK, CLICK, frames=("a", "a"), changed=False, reward=1.0), -1),
    ("unseen-reward", run(CLICK, CLICK, frames=("a", "b"), changed=None, reward=1.0), None),
    ("unseen-reward", run(CLICK, CLICK, frames=("a", "a"), changed=False, reward=0.0), None),
]


@pytest.mark.parametrize(("name", "paid", "turn"), FOUND)
def test_a_shipped_scanner_finds_its_turn(name, paid, turn):
    """-1: found, in no turn in particular."""
    hit = find(of(name), paid)
    assert (hit is not None) == (turn is not None)
    if hit is not None:
        assert hit.turn == (None if turn == -1 else turn)
        assert hit.note


@pytest.mark.parametrize(
    ("definition", "paid", "turn"),
    [
        ({"kind": "text", "pattern": r"(?i)lucky"}, run(CLICK, CLICK, said=("no", "A Lucky guess")), 1),
        ({"kind": "text", "pattern": "x", "where": "typed"}, run(typed("abc"), typed("xyz")), 1),
        ({"kind": "text", "pattern": "a", "min_turns": 2}, run(CLICK, CLICK, said=("a", "b")), None),
        ({"kind": "actions", "steps": ["click", "any", "type"]}, run(WAIT, CLICK, WAIT, typed("a")), 1),
        ({"kind": "actions", "steps": ["wait"], "times": 3}, run(WAIT, WAIT, CLICK, WAIT), None),
    ],
)
def test_own_patterns(definition, paid, turn):
    hit = find(read_definition(definition), paid)
    assert (None if hit is None else hit.turn) == turn


def test_nothing_is_found_in_nothing():
    for name, shipped in SHIPPED.items():
        if shipped.definition.kind != "model":
            assert find(shipped.definition, run()) is None, name
    assert {one.definition.rule for one in SHIPPED.values() if one.definition.kind == "rule"} == set(RULES)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kind": "text", "pattern": "("}, "missing )"),
        ({"kind": "text", "pattern": "(?=x)"}, "invalid perl operator"),
        ({"kind": "text", "pattern": "|".join(f"a[ab]{{{n}}}c" for n in range(900, 930))}, "more than 1000"),
        ({"kind": "text", "pattern": r"\pL{200}"}, "more than 20 of Unicode"),
        ({"kind": "text", "pattern": r"\pL" * 21}, "more than 20 of Unicode"),
        ({"kind": "text", "pattern": "(([ab]{30}){10}){5,9}c"}, "more than 1000"),
        ({"kind": "actions", "steps": ["fly"]}, "'fly' is no kind of action"),
        ({"kind": "model", "question": "?", "url": "file:///etc/passwd"}, "with http or https and a host"),
        ({"kind": "model", "question": "?", "url": "https://me:pw@host/v1"}, "must not hold a token"),
        ({"kind": "model", "question": "?", "secret": "../key"}, "name a secret"),
        ({"kind": "dance"}, "dance"),
        ([], "kind"),
    ],
)
def test_a_definition_that_cannot_be_is_refused_by_its_field(values, message):
    with pytest.raises(BadValue, match="(?s)" + message.replace("(", r"\(").replace(")", r"\)")):
        read_definition(values)


def test_no_pattern_takes_long():
    """A backtracking engine needs 2 ** 40 steps for this."""
    began = time.process_time()
    assert not matches("(a+)+$", "a" * 40 + "b")
    assert time.process_time() - began < 5
