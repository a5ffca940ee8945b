"""What of an entry is trained on: its first and last turn, and actions that people corrected.

    {"first": 2, "last": 7, "actions": {"5": {"kind": "click", "x": 10, "y": 20}}}      indexes of turns

Turns before the first, and turns marked bad, stay as the context in which the later ones were sampled,
without a loss; turns behind the last are cut off, since nothing depends on them. A corrected turn is written
anew from its action, so its entry has no importance ratio any more and is imitated.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from training.contracts.types import Action, Trajectory, Turn
from webapp.lib.request_values import BadValue
from webapp.trajectories.turn_display import action_caption

FIELDS = ("first", "last", "actions")


@dataclass(frozen=True, slots=True)
class TurnEdit:
    """An edit as it is stored; of nothing when every field is empty."""

    first: int | None = None
    """Index of the first turn that is imitated."""
    last: int | None = None
    """Index of the last turn that stays."""
    actions: Mapping[int, Action] = field(default_factory=dict)
    """Index -> what should have been done."""

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> TurnEdit:
        """Raises BadValue naming the field."""
        for name in stored:
            if name not in FIELDS:
                raise BadValue("edit", f"knows no field {name!r}")
        first, last = _index(stored, "first"), _index(stored, "last")
        actions = stored.get("actions") or {}
        if not isinstance(actions, dict):
            raise BadValue("edit.actions", "not an object")
        return cls(first, last, {_turn(key): _action(key, value) for key, value in actions.items()})

    def as_json(self) -> dict[str, Any]:
        """As it is stored; {} when nothing is changed."""
        found: dict[str, Any] = {"first": self.first, "last": self.last}
        found = {name: value for name, value in found.items() if value is not None}
        if self.actions:
            found["actions"] = {
                str(index): action.model_dump(mode="json", exclude_defaults=True)
                for index, action in sorted(self.actions.items())
            }
        return found

    def check(self, indexes: Collection[int]) -> None:
        """Raise BadValue unless it names turns of `indexes` and leaves one of them."""
        for name, value in (("first", self.first), ("last", self.last)):
            if value is not None and value not in indexes:
                raise BadValue(name, f"the trajectory has no turn {value + 1}")
        for index in self.actions:
            if index not in indexes:
                raise BadValue("actions", f"the trajectory has no turn {index + 1}")
        if self.first is not None and self.last is not None and self.first > self.last:
            raise BadValue("first", f"turn {self.first + 1} is behind the last one, {self.last + 1}")

    def split(self, at: int) -> tuple[TurnEdit, TurnEdit]:
        """What it makes of the turns before `at`, and of the others."""
        before = {index: action for index, action in self.actions.items() if index < at}
        behind = {index: action for index, action in self.actions.items() if index >= at}
        return TurnEdit(self.first, at - 1, before), TurnEdit(at, self.last, behind)

    def state_of(self, index: int) -> str:
        """What becomes of a turn: trained, context or cut."""
        if self.last is not None and index > self.last:
            return "cut"
        return "context" if self.first is not None and index < self.first else "trained"


def edit_words(stored: Mapping[str, Any]) -> str:
    """A stored edit as the label history tells it; "" when nothing is changed."""
    edit = TurnEdit.read(stored)
    words = []
    if edit.first is not None:
        words.append(f"from turn {edit.first + 1}")
    if edit.last is not None:
        words.append(f"to turn {edit.last + 1}")
    for index, action in sorted(edit.actions.items()):
        words.append(f"turn {index + 1}: {action_caption(action.model_dump(mode='json'))}")
    return ", ".join(words)


def _index(stored: Mapping[str, Any], name: str) -> int | None:
    value = stored.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise BadValue(f"edit.{name}", "not the index of a turn")
    return value


def _turn(key: str) -> int:
    if not (key.isascii() and key.isdecimal() and len(key) < 6):
        raise BadValue("edit.actions", f"{key[:20]!r} is not the index of a turn")
    return int(key)


def _action(key: str, value: Any) -> Action:
    try:
        return Action.model_validate(value)
    except ValidationError as error:
        raise BadValue(f"edit.actions.{key}", error.errors()[0]["msg"]) from error


def as_trained(trajectory: Trajectory, edit: TurnEdit, bad_turns: Collection[int] = ()) -> Trajectory:
    """The trajectory as the trainer gets it; `bad_turns`: indexes of turns that are not imitated.

    Its reward is what was recorded: it belongs to all that was done.
    """
    turns = (
        _edited(turn, edit, bad_turns) for turn in trajectory.turns if edit.state_of(turn.index) != "cut"
    )
    return trajectory.model_copy(update={"turns": tuple(turns)})


def _edited(turn: Turn, edit: TurnEdit, bad_turns: Collection[int]) -> Turn:
    if edit.state_of(turn.index) == "context":
        return turn.model_copy(update={"is_context": True})
    if (action := edit.actions.get(turn.index)) is not None:
        new = {"action": action, "completion": None, "parse_error": None, "action_error": None}
        return turn.model_copy(update=new)
    return turn.model_copy(update={"is_context": True}) if turn.index in bad_turns else turn
