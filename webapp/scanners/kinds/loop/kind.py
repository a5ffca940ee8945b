"""Repeated actions."""

from typing import ClassVar, Literal

from pydantic import Field

from webapp.scanners.kinds.contract import Hit, Pattern
from webapp.scanners.transcripts import Paid
from webapp.trajectories.action_words import actions_of, turn_signature


class Loop(Pattern):
    """The same actions again and again: clicks on one widget count as the same."""

    title: ClassVar[str] = "Repeated actions"

    kind: Literal["loop"] = "loop"
    longest: int = Field(default=4, ge=1, le=20)
    """Turns of the longest round that is looked for."""
    times: int = Field(default=3, ge=2, le=100)
    """Rounds in a row."""

    def find(self, paid: Paid) -> Hit | None:
        """The first round of equal actions that is repeated often enough; turns without an action end it."""
        turns = paid.transcript.turns
        done = [turn_signature(actions_of(turn)) if turn.action else None for turn in turns]
        for start, turn in enumerate(turns):
            for length in range(1, self.longest + 1):
                num = _rounds(done, start, length)
                if num >= self.times:
                    what = f"{turn.did}" if length == 1 else f"{length} actions from “{turn.did}”"
                    return Hit(turn.index, f"{what}, {num} times in a row")
        return None


def _rounds(done: list[str | None], start: int, length: int) -> int:
    """How often done[start:start + length] stands there in a row; 0 where a turn has no action."""
    first = done[start : start + length]
    if None in first or len(first) < length:
        return 0
    num = 1
    while done[start + num * length : start + (num + 1) * length] == first:
        num += 1
    return num
