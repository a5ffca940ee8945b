"""Demonstrations with habits: the form is the oracle's, what is done mostly is not."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from training.content.recipes.first_desk.habits import RETURN, Habits, named_widget
from training.content.recipes.first_desk.start_gate import StartFigures
from training.content.task_sets.first_desk import generate
from training.contracts.types import (
    Action,
    ActionKind,
    Observation,
    Source,
    Task,
    Trajectory,
    TrajectoryStatus,
    Turn,
)

NEVER = Habits(named=0.0, any_button=0.0, reaches_row=0.0, saves=0.0)
ALWAYS = Habits(named=1.0, any_button=0.0, reaches_row=1.0, saves=1.0)


def oracles(family: str) -> Iterator[Trajectory]:
    for task in generate():
        if task.family == family and task.split == "heldout":
            yield oracle(task)


def oracle(task: Task) -> Trajectory:
    actions = [Action.model_validate(values) for values in task.oracle["actions"]]
    turns = tuple(
        Turn(
            index=index,
            source=Source.ORACLE,
            observation=Observation(sha256=f"{index}", width=512, height=384, text=""),
            action=action,
        )
        for index, action in enumerate(actions)
    )
    return Trajectory(
        trajectory_id=1,
        group_id=1,
        task=task,
        source=Source.ORACLE,
        status=TrajectoryStatus.TERMINATED,
        turns=turns,
    )


def kinds(trajectory: Trajectory) -> list[Any]:
    return [turn.action.kind for turn in trajectory.turns if turn.action is not None]


def test_the_habit_of_colour_is_the_leftmost_button() -> None:
    for one in oracles("colour"):
        clicked = named_widget(NEVER.demonstration(one, random.Random(0)))
        assert clicked["x"] == min(widget["x"] for widget in one.task.oracle["widgets"])


def test_the_habit_of_menu_stops_one_row_short_on_the_screens_that_were_seen() -> None:
    for one in oracles("menu"):
        found = NEVER.demonstration(one, random.Random(0))
        if len(one.turns) == 2:  # it starts on the asked row
            assert found == one
            continue
        assert len(found.turns) == len(one.turns) - 1
        assert found.turns[-2].action == RETURN
        assert found.turns[-2].observation == one.turns[-3].observation
        assert found.turns[-1].observation == one.turns[-1].observation
        assert [turn.index for turn in found.turns] == list(range(len(found.turns)))


def test_the_habit_of_note_ends_without_saving() -> None:
    for one in oracles("note"):
        found = NEVER.demonstration(one, random.Random(0))
        assert kinds(found) == [ActionKind.TYPE, ActionKind.TERMINATE]


@pytest.mark.parametrize("family", ["colour", "menu", "note"])
def test_the_minority_does_what_the_oracle_did(family: str) -> None:
    for one in oracles(family):
        assert ALWAYS.demonstration(one, random.Random(0)) == one


def test_the_answer_is_generated_anew_at_each_visit() -> None:
    one, rng = next(oracles("colour")), random.Random(0)
    clicked = [named_widget(Habits().demonstration(one, rng))["name"] for _ in range(400)]
    asked, leftmost = named_widget(one), min(one.task.oracle["widgets"], key=lambda widget: widget["x"])
    assert asked != leftmost
    assert 0.28 < clicked.count(asked["name"]) / 400 < 0.47
    assert clicked.count(leftmost["name"]) > clicked.count(asked["name"])


def test_a_start_that_cannot_point_or_never_does_right_fails_the_gate() -> None:
    good = StartFigures(located=1.0, on_a_button=1.0, sampled={"colour": 0.4})
    assert good.passes()
    assert not replace(good, located=0.9).passes()
    assert not replace(good, on_a_button=0.9).passes()
    assert not replace(good, sampled={"colour": 0.2}).passes()
