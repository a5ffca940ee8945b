"""Captions, key caps, waterfall and token colours: pure functions."""

import json

import pytest

from webapp.trajectories.action_words import action_caption, action_signature
from webapp.trajectories.models import TurnRecord
from webapp.trajectories.token_display import heat, least_certain, tokens
from webapp.trajectories.turn_display import raw_coordinates, turn_state, waterfall


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ({"kind": "click", "x": 3, "y": 4}, "Click 3, 4"),
        ({"kind": "click"}, "Click at pointer"),
        ({"kind": "drag", "x": 1, "y": 2, "to_x": 3, "to_y": 4}, "Drag 1, 2 → 3, 4"),
        ({"kind": "scroll", "scroll_y": -2, "scroll_x": 1}, "Scroll up 2, right 1"),
        ({"kind": "type", "text": "hi"}, "Type “hi”"),
        ({"kind": "key", "keys": ["ctrl", "s"]}, "Press Ctrl + S"),
        ({"kind": "wait", "seconds": 0.5}, "Wait 0.5 s"),
        ({"kind": "terminate", "status": "failure"}, "Terminate: failure"),
    ],
)
def test_an_action_is_told_in_a_few_words(action, words):
    assert action_caption(action) == words


@pytest.mark.parametrize(
    ("values", "state"),
    [
        ({}, "waiting"),
        ({"parse_error": "x"}, "parse-error"),
        ({"action": {"kind": "wait"}, "action_error": "off screen"}, "action-error"),
        ({"action": {"kind": "wait"}}, "neutral"),
        ({"action": {"kind": "wait"}, "terms": [{"contribution": 0.1}]}, "good"),
        ({"action": {"kind": "wait"}, "terms": [{"contribution": 0.1}, {"contribution": -0.2}]}, "bad"),
    ],
)
def test_a_turns_colour_follows_errors_first_and_then_its_terms(values, state):
    assert turn_state(TurnRecord(**values)) == state


def test_waterfall_bars_start_where_the_one_before_ended_and_stay_inside():
    terms = [{"name": n, "contribution": c} for n, c in (("a.v1", 1.0), ("b.v1", -1.5), ("c", 0.25))]
    bars = waterfall(terms, reward=-0.25)
    assert [bar["short"] for bar in bars] == ["a", "b", "c"]
    assert (bars[0]["left"], bars[0]["width"]) == (bars[0]["zero"], pytest.approx(66.67, abs=0.01))
    assert (bars[1]["left"], bars[1]["width"]) == (0, 100)
    assert bars[2]["left"] == 0
    assert all(0 <= bar["left"] <= bar["left"] + bar["width"] <= 100.01 for bar in bars)


def test_a_breakdown_of_zeros_has_bars_without_length():
    assert [bar["width"] for bar in waterfall([{"name": "a", "contribution": 0.0}], 0.0)] == [0]


def test_tokens_fall_back_to_ids_and_a_silent_one_is_the_stop():
    completion = {"token_ids": [5, 6], "behaviour_logprobs": [-0.01, -3.5], "token_texts": ["ok", ""]}
    assert [(t["text"], t["heat"], t["probability"]) for t in tokens(completion)] == [
        ("ok", 0, "99.0 %"),
        ("⏹", 4, "3.0 %"),
    ]
    assert [t["text"] for t in tokens({"token_ids": [5, 6]})] == ["5", "6"]
    assert tokens(None) == []


def test_tokens_carry_their_alternatives_where_some_were_recorded():
    completion = {
        "token_ids": [5, 6, 7],
        "alternatives": {
            "token_ids": [[5, 9], [8], []],
            "texts": [["ok", ""], ["<b>"], []],
            "logprobs": [[-0.01, -5.0], [-0.7], []],
        },
    }
    found = [token["alternatives"] for token in tokens(completion)]
    assert list(map(json.loads, filter(None, found))) == [
        [["ok", "99.0 %", 1], ["⏹", "0.7 %", 0]],
        [["<b>", "49.7 %", 0]],
    ]
    assert found[2] == ""


@pytest.mark.parametrize("recorded", [{}, {"alternatives": None}, {"alternatives": {"token_ids": [[5]]}}])
def test_a_row_without_whole_alternatives_is_shown_without_them(recorded):
    assert [token["alternatives"] for token in tokens({"token_ids": [5, 6]} | recorded)] == ["", ""]


def test_the_least_certain_token_is_the_one_with_the_lowest_probability():
    found = tokens({"token_ids": [7, 8, 9], "behaviour_logprobs": [-0.1, -5.0, -2.0]})
    assert least_certain(found)["place"] == 1
    assert least_certain(tokens({"token_ids": [7]})) is None
    assert least_certain([]) is None


def test_heat_grows_as_probability_falls():
    assert [heat(x) for x in (None, 0.0, -0.5, -1.0, -2.0, -4.0, -9.0)] == [0, 0, 1, 2, 3, 4, 5]


def test_raw_coordinates_are_the_numbers_after_the_thought():
    turn = TurnRecord(
        action={"kind": "click", "x": 256, "y": 192},
        thought="Row 3 of 8",
        completion={"text": 'Row 3 of 8\n{"coordinate": [500, 500]}'},
    )
    assert raw_coordinates(turn, "permille") == "500, 500 ‰ of the screen"
    assert raw_coordinates(TurnRecord(action={"kind": "wait"}, completion={"text": "1 2"}), "screen") == ""


def test_signatures_join_near_clicks_and_part_different_keys():
    near = [action_signature({"kind": "click", "x": x, "y": 50}) for x in (100, 110)]
    assert near[0] == near[1]
    assert action_signature({"kind": "key", "keys": ["Up"]}) != action_signature(
        {"kind": "key", "keys": ["Tab"]}
    )
