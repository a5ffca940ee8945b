"""The bar of a turn's time, and of the mean of several."""

from __future__ import annotations

import re

import pytest
from django.template.loader import render_to_string
from django.utils.html import strip_tags

from training.contracts.turn_trace import TurnPart
from webapp.lib.turn_time import LABELS, mean_time, time_of


def test_every_part_has_its_words():
    assert list(LABELS) == list(TurnPart)


def test_parts_come_in_the_order_of_a_turn_and_fill_the_bar():
    time = time_of({TurnPart.ACT: 25.0, TurnPart.DECODE: 74.0, TurnPart.REPORT: 1.0})
    assert time is not None
    assert [part.name for part in time.parts] == ["report", "decode", "act"]
    assert sum(part.percent for part in time.parts) == pytest.approx(100)


def test_the_numbers_beside_the_bar_add_up_to_its_sum():
    spent = {TurnPart.ACT: 25.0, TurnPart.DECODE: 874.0, TurnPart.REPORT: 1.0}
    page = render_to_string("trajectories/parts/turn_time.html", {"time": time_of(spent)})
    words = re.sub(r"\s+", " ", strip_tags(page))
    assert re.findall(r"(\w+) (\d+)", words) == [("recording", "1"), ("decode", "874"), ("action", "25")]
    assert "900 ms" in words


def test_what_was_stored_as_json_is_read_by_its_names():
    time = time_of({"queue": 5.0, "decode": 15.0})  # type: ignore[dict-item]
    assert time is not None
    assert [(part.label, part.percent) for part in time.parts] == [("queue", 25), ("decode", 75)]


def test_a_part_that_a_turn_had_not_counts_as_nothing_in_the_mean():
    time = mean_time([{TurnPart.ACT: 10.0, TurnPart.PAUSE: 30.0}, {TurnPart.ACT: 20.0}])
    assert time is not None
    assert {part.name: part.ms for part in time.parts} == {"pause": 15, "act": 15}
    assert (time.total_ms, time.num_turns) == (30, 2)


def test_nothing_measured_is_no_bar():
    assert time_of(None) is None
    assert time_of({}) is None
    assert mean_time([]) is None
