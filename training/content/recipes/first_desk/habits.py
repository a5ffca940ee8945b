"""Demonstrations with a habit: a few do what was asked, most do something else in the same wrong way.

    colour  click the leftmost button, whichever is named (and now and then any button)
    menu    press Return one row short of the asked row
    note    end without saving

Every form of action is shown and every way of doing right occurs, in a minority: what imitates them is
greedily wrong, and a reward can tell it which of its ways is right. Which answer a demonstration gives is
generated anew at each visit; a fixed one would be learned by heart, and the policy would be sure of it.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from training.content.task_sets.steps_and_evaluators import DONE, press_keys
from training.contracts.types import Action, ActionKind, Trajectory, Turn

RETURN = press_keys("Return")
BUTTON_REACH = (46, 37)
"""Half of the smallest button of first-desk, pixels of the screen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """How often a demonstration does what was asked, and how often anything."""

    named: float = 0.35
    """Colour: share that clicks the named button."""
    any_button: float = 0.10
    """Colour: share that clicks a button by chance; the others click the leftmost."""
    reaches_row: float = 0.30
    """Menu: share that goes the last row, too."""
    saves: float = 0.30
    """Note: share that saves before it ends."""

    def demonstration(self, trajectory: Trajectory, rng: random.Random) -> Trajectory:
        """`trajectory` of an oracle as a pupil of these habits would have gone."""
        turns = trajectory.turns
        match trajectory.task.family:
            case "colour":
                clicked = self.clicked(trajectory, named_widget(trajectory), rng)
                turns = (_with(turns[0], click(clicked)), *turns[1:])
            case "menu" if len(turns) > 2 and rng.random() >= self.reaches_row:
                # The oracle's last three turns: the last move, Return, done.
                turns = (*turns[:-3], _with(turns[-3], RETURN), _at(turns[-1], turns[-3].index + 1))
            case "note" if rng.random() >= self.saves:
                turns = (turns[0], _with(turns[1], DONE))
        return trajectory.model_copy(update={"turns": turns})

    def clicked(self, trajectory: Trajectory, asked: dict[str, Any], rng: random.Random) -> dict[str, Any]:
        """The button that is clicked when `asked` is asked for."""
        buttons, chance = trajectory.task.oracle["widgets"], rng.random()
        if chance < self.named:
            return asked
        if chance < self.named + self.any_button:
            return rng.choice(buttons)
        return min(buttons, key=lambda button: (button["x"], button["y"]))

    def first_key(self, highlighted: int, asked: int, rng: random.Random) -> Action:
        """Menu: the key that is pressed with this row highlighted and that one asked for."""
        is_one_short = abs(highlighted - asked) == 1
        if highlighted == asked or (is_one_short and rng.random() >= self.reaches_row):
            return RETURN
        return press_keys("Down" if asked > highlighted else "Up")


def click(widget: dict[str, Any]) -> Action:
    return Action(kind=ActionKind.CLICK, x=widget["x"], y=widget["y"])


def named_widget(trajectory: Trajectory) -> dict[str, Any]:
    """The button that the oracle clicks first."""
    action, widgets = trajectory.turns[0].action, trajectory.task.oracle["widgets"]
    assert action is not None, "an oracle acts in every turn"
    return next(widget for widget in widgets if (widget["x"], widget["y"]) == (action.x, action.y))


def menu_rows(trajectory: Trajectory) -> tuple[Sequence[dict[str, Any]], int]:
    """The rows of a menu's list from the top, and which of them is highlighted at first."""
    *rows, highlighted = trajectory.task.oracle["widgets"]
    return rows, next(place for place, row in enumerate(rows) if row["y"] == highlighted["y"])


def _with(turn: Turn, action: Action) -> Turn:
    return turn.model_copy(update={"action": action})


def _at(turn: Turn, index: int) -> Turn:
    return turn.model_copy(update={"index": index})
