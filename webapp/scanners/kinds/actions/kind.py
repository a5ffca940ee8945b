"""A sequence of actions."""

from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from training.contracts.types import ActionKind
from webapp.scanners.kinds.contract import Hit, Pattern
from webapp.scanners.transcripts import Paid

ANY = "any"


class ActionSequence(Pattern):
    """Turns in a row whose actions are of these kinds."""

    title: ClassVar[str] = "A sequence of actions"

    kind: Literal["actions"] = "actions"
    steps: tuple[str, ...] = Field(min_length=1, max_length=20)
    """Kinds of actions; "any" stands for each of them."""
    times: int = Field(default=1, ge=1, le=100)
    """The sequence so often in a row."""

    @field_validator("steps")
    @classmethod
    def _known(cls, steps: tuple[str, ...]) -> tuple[str, ...]:
        for step in steps:
            if step != ANY and step not in tuple(ActionKind):
                raise ValueError(f"{step!r} is no kind of action; use {', '.join(ActionKind)} or {ANY}")
        return steps

    @classmethod
    def choices(cls) -> dict[str, Any]:
        return {"action_kinds": [*ActionKind, ANY]}

    def find(self, paid: Paid) -> Hit | None:
        """The first place where the sequence stands, so often in a row."""
        turns, wanted = paid.transcript.turns, self.steps * self.times
        kinds = [str((turn.action or {}).get("kind", "")) for turn in turns]
        for start in range(len(kinds) - len(wanted) + 1):
            there = kinds[start : start + len(wanted)]
            if all(step in (ANY, kind) for step, kind in zip(wanted, there, strict=True)):
                words = ", ".join(self.steps)
                often = f", {self.times} times" if self.times > 1 else ""
                return Hit(turns[start].index, f"{words}{often}")
        return None
