"""What of an entry is trained on: its first and last turn, and actions that people corrected.

    {"first": 2, "last": 7, "context": [4], "actions": {"5": {"kind": "click", "x": 10, "y": 20}}}

Numbers are indexes of turns. Turns before the first, those named as context, and turns marked bad stay as
the context in which the later ones were sampled, without a loss; turns behind the last are cut off, since
nothing depends on them. A corrected turn is written anew from its action, so its entry has no importance
ratio any more and is imitated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pydantic import ValidationError

from training.contracts.plain_errors import in_plain_words
from training.contracts.types import Action, Trajectory, Turn
from webapp.lib.request_values import BadValue
from webapp.trajectories.action_words import action_caption

FIELDS = ("first", "last", "context", "actions")


class NothingGood(BadValue):
    """Raised when an entry has no turn that could be accepted."""


class TurnOutcome(Protocol):
    """What an edit looks at of a turn, stored or as it travels."""

    index: int
    parse_error: Any
    action_error: Any


@dataclass(frozen=True, slots=True)
class TurnEdit:
    """An edit as it is stored; of nothing when every field is empty."""

    first: int | None = None
    """Index of the first turn that is imitated."""
    last: int | None = None
    """Index of the last turn that stays."""
    actions: Mapping[int, Action] = field(default_factory=dict)
    """Index -> what should have been done."""
    context: frozenset[int] = frozenset()
    """Indexes of further turns that are not imitated."""

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
        found = {_turn(key): _action(key, value) for key, value in actions.items()}
        return cls(first, last, found, _context(stored))

    def as_json(self) -> dict[str, Any]:
        """As it is stored; {} when nothing is changed."""
        found: dict[str, Any] = {"first": self.first, "last": self.last}
        found = {name: value for name, value in found.items() if value is not None}
        if self.context:
            found["context"] = sorted(self.context)
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
        for name, named in (("actions", self.actions), ("context", self.context)):
            for index in named:
                if index not in indexes:
                    raise BadValue(name, f"the trajectory has no turn {index + 1}")
        if self.first is not None and self.last is not None and self.first > self.last:
            raise BadValue("first", f"turn {self.first + 1} is behind the last one, {self.last + 1}")

    def split(self, at: int) -> tuple[TurnEdit, TurnEdit]:
        """What it makes of the turns before `at`, and of the others."""
        before = {index: action for index, action in self.actions.items() if index < at}
        behind = {index: action for index, action in self.actions.items() if index >= at}
        own, other = (frozenset(i for i in self.context if (i < at) == is_own) for is_own in (True, False))
        return TurnEdit(self.first, at - 1, before, own), TurnEdit(at, self.last, behind, other)

    def state_of(self, index: int) -> str:
        """What becomes of a turn: trained, context or cut."""
        if self.last is not None and index > self.last:
            return "cut"
        is_before = self.first is not None and index < self.first
        return "context" if is_before or index in self.context else "trained"

    def bad_turns(self, turns: Iterable[TurnOutcome]) -> list[int]:
        """Indexes of what would be imitated although it did nothing: unparsable or refused, not corrected."""
        return [
            turn.index
            for turn in turns
            if (turn.parse_error or turn.action_error)
            and self.state_of(turn.index) == "trained"
            and turn.index not in self.actions
        ]

    def trimmed(self, turns: Sequence[TurnOutcome]) -> TurnEdit:
        """It ends at the last good turn, and bad ones before that are context.

        Raises NothingGood when no good turn is left.
        """
        bad = set(self.bad_turns(turns))
        good = [t.index for t in turns if self.state_of(t.index) == "trained" and t.index not in bad]
        if not good:
            raise NothingGood("verdict", "no turn with an executed action is left to accept: reject it")
        if not bad:
            return self
        last = max(good)
        return replace(self, last=last, context=self.context | {index for index in bad if index < last})


def edit_words(stored: Mapping[str, Any]) -> str:
    """A stored edit as the label history tells it; "" when nothing is changed."""
    edit = TurnEdit.read(stored)
    words = []
    if edit.first is not None:
        words.append(f"from turn {edit.first + 1}")
    if edit.last is not None:
        words.append(f"to turn {edit.last + 1}")
    if edit.context:
        words.append("without turn " + ", ".join(str(index + 1) for index in sorted(edit.context)))
    for index, action in sorted(edit.actions.items()):
        words.append(f"turn {index + 1}: {action_caption(action.model_dump(mode='json'))}")
    return ", ".join(words)


def _index(stored: Mapping[str, Any], name: str) -> int | None:
    value = stored.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise BadValue(f"edit.{name}", "not the index of a turn")
    return value


def _context(stored: Mapping[str, Any]) -> frozenset[int]:
    named = stored.get("context") or []
    if not isinstance(named, list):
        raise BadValue("edit.context", "not a list of indexes of turns")
    found = [_index({"context": one}, "context") for one in named]
    return frozenset(index for index in found if index is not None)


def _turn(key: str) -> int:
    if not (key.isascii() and key.isdecimal() and len(key) < 6):
        raise BadValue("edit.actions", f"{key[:20]!r} is not the index of a turn")
    return int(key)


def _action(key: str, value: Any) -> Action:
    try:
        return Action.model_validate(value)
    except ValidationError as error:
        raise BadValue(f"edit.actions.{key}", in_plain_words(error.errors()[0]["msg"])) from error


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
        return turn.model_copy(update={**new, "earlier_actions": ()})
    return turn.model_copy(update={"is_context": True}) if turn.index in bad_turns else turn
