"""Slime-OSWorld's terms as its own code computes them (8ba30a4): numbers that it gave for these turns."""

from collections.abc import Iterator

import pytest

from training.actions.action_text_in_tree import is_grounded, target_text
from training.contracts.config import RewardConfig
from training.contracts.observed_text import MeasuredTurn
from training.contracts.types import Action, Observation, Turn
from training.rewards import compute_reward
from training.rewards.term import ScoredTrajectory, facts_of
from training.rewards.terms import TERMS

V2 = RewardConfig(preset="slime-osworld.v2")


def turn(action: dict | None, **measured: object) -> Turn:
    return Turn(
        index=0,
        observation=Observation(sha256="", width=512, height=384),
        action=Action.model_validate(action) if action else None,
        measured=MeasuredTurn.model_validate(measured) if measured else None,
    )


def typed(text: str = "fox", **measured: object) -> Turn:
    return turn({"kind": "type", "text": text}, **measured)


def pressed(*keys: str, **measured: object) -> Turn:
    return turn({"kind": "key", "keys": keys}, **measured)


def pointed(kind: str, x: int = 10, y: int = 10, **more: object) -> Turn:
    return turn({"kind": kind, "x": x, "y": y, **more})


CLICK = pointed("click")
DONE, WAIT = turn({"kind": "terminate", "status": "success"}), turn({"kind": "wait", "seconds": 1.0})


def value(term: str, turns: list[Turn]) -> float:
    facts = tuple(facts_of(one) for one in turns)
    return TERMS[term](ScoredTrajectory(facts, 0.0, 8)).value


@pytest.mark.parametrize(
    ("turns", "tool_calling"),
    [
        ([typed(), pressed("ctrl", "s"), DONE], 0.9),  # a case of the original: write is no modality
        ([typed(), pressed("Return"), DONE], 0.8),  # nor is press
        ([CLICK, pressed("ctrl", "s"), DONE], 1.0),
        ([CLICK, WAIT, DONE], 1.0),
        ([CLICK, pointed("double_click"), pointed("triple_click")], 0.9),
        ([None, None], 0.4 / 3 + 0.4),  # "unknown" is a name
        ([CLICK, None, pressed("Return")], 0.9),
        ([DONE], 0.4 / 3 + 0.2),
        ([pointed("move"), pointed("drag", to_x=3, to_y=4), turn({"kind": "scroll", "scroll_y": 3})], 1.0),
        ([CLICK] * 8, 0.4 / 3 + 0.4 * 5 / 8 + 0.1),
        ([], 0.0),
    ],
)
def test_tool_calling_knows_pyautoguis_names(turns, tool_calling):
    turns = [one or turn(None) for one in turns]
    assert value("tool_calling.v2", turns) == pytest.approx(tool_calling)


@pytest.mark.parametrize(
    ("turns", "penalty"),
    [
        ([CLICK, CLICK], 0.2),
        ([CLICK, pointed("click", 90)], 0.0),
        ([typed("a"), typed("b")], 0.2),
        ([pressed("Return"), pressed("Tab")], 0.2),
        ([pressed("Return"), pressed("ctrl", "s")], 0.0),  # press and hotkey are two names
        ([pointed("triple_click", 1), pointed("triple_click", 99)], 0.2),  # no point is read of these
        ([pointed("drag", 1, to_x=3, to_y=4), pointed("drag", 99, to_x=8, to_y=9)], 0.2),
        ([pointed("right_click", 1), pointed("right_click", 99)], 0.0),
        ([DONE, turn({"kind": "terminate", "status": "failure"})], 0.0),
        ([turn(None), turn(None)], 0.2),
        ([CLICK] * 9, 0.3),
        ([CLICK], 0.0),
    ],
)
def test_repetition_looks_at_the_name_and_at_the_point_of_clicks(turns, penalty):
    assert value("repetition_penalty.v2", turns) == pytest.approx(penalty)


@pytest.mark.parametrize(
    ("action", "target"),
    [
        ({"kind": "type", "text": "hello"}, "hello"),
        ({"kind": "type", "text": "it's here"}, "it"),
        ({"kind": "type", "text": 'say "hi" now'}, "say \\"),
        ({"kind": "type", "text": "'tis"}, "tis"),
        ({"kind": "type", "text": "two\nlines"}, "two\nlines"),
        ({"kind": "type", "text": ""}, ""),
        ({"kind": "key", "keys": ["Return"]}, "enter"),
        ({"kind": "key", "keys": ["super", "r"]}, "win"),
        ({"kind": "key", "keys": ["ctrl", "s"]}, "ctrl"),
        ({"kind": "click", "x": 1, "y": 2}, ""),
        ({"kind": "wait", "seconds": 1.0}, ""),
        ({"kind": "terminate", "status": "success"}, ""),
    ],
)
def test_the_target_is_the_first_quoted_piece_of_the_call(action, target):
    assert target_text(Action.model_validate(action)) == target


def test_an_action_is_grounded_in_small_letters_anywhere_in_the_tree():
    hello, enter = (Action(kind="type", text="hello"), Action(kind="key", keys=("Return",)))
    assert is_grounded(hello, '<label name="Say HELLO to"/>')
    assert is_grounded(enter, '<push-button name="Center"/>')
    assert not is_grounded(hello, "<label/>")
    assert not is_grounded(hello, "")
    assert not is_grounded(Action(kind="click", x=1, y=2), "<label/>")
    assert not is_grounded(None, "<label/>")


def test_tree_and_terminal_of_the_originals_case():
    """Types and presses what the tree holds, then clicks; the tree grew to more than twice, then stayed."""
    turns = [
        typed("hello", tree_before=30, tree_after=90, is_grounded=True, terminal_changed=True),
        pressed("Return", tree_before=90, tree_after=0, is_grounded=True, terminal_changed=True),
        turn(
            {"kind": "click", "x": 9, "y": 9},
            tree_before=10_000,
            tree_after=10_005,
            is_grounded=False,
            terminal_changed=True,
        ),
    ]
    assert value("a11y_grounding.v2", turns) == pytest.approx(0.6667, abs=1e-4)
    assert value("a11y_change.v2", turns) == pytest.approx((1 + 1 + 0.0005) / 3)
    assert value("terminal_change.v2", turns) == 1.0
    partial = 0.10 + 0.15 + 0.10 * 2 / 3 + 0.15 * 0.9 + 0.05 * 5 / 8 + 0.05 * 2.0005 / 3 + 0.05
    assert compute_reward(turns, 0.0, V2, max_turns=8).reward == pytest.approx(0.3 * partial)


def test_no_tree_before_is_no_change():
    assert value("a11y_change.v2", [typed(tree_before=0, tree_after=70)]) == 0.0
    assert value("a11y_change.v2", [typed(tree_before=70)]) == 0.0


def test_screen_change_is_the_mean_of_the_measured_differences():
    turns = [typed(screen_difference=0.3), turn(None, screen_difference=0.0), DONE]
    assert value("screen_change.v2", turns) == pytest.approx(0.1)


def notes(turns: list[Turn]) -> Iterator[str]:
    yield from (term.note for term in compute_reward(turns, 0.0, V2, max_turns=8).terms if term.note)


def test_turns_of_before_say_what_was_not_recorded():
    assert list(notes([CLICK])) == [
        "no accessibility tree was recorded",
        "the difference of the screens was not recorded",
        "no accessibility tree was recorded",
        "no terminal text was recorded",
    ]
    whole = {"screen_difference": 0.0, "tree_before": 3, "tree_after": 3, "terminal_changed": False}
    whole |= {"is_grounded": False}
    assert list(notes([typed(**whole)])) == []
