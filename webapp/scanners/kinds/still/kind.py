"""A screen that stands still."""

from itertools import groupby
from typing import ClassVar, Literal

from pydantic import Field

from webapp.scanners.kinds.contract import Hit, Pattern
from webapp.scanners.transcripts import Paid


class StillScreen(Pattern):
    """A screen that no action changes."""

    title: ClassVar[str] = "A screen that stands still"

    kind: Literal["still"] = "still"
    turns: int = Field(default=4, ge=2, le=1000)
    """In a row on the same screen."""

    def find(self, paid: Paid) -> Hit | None:
        """The longest run of turns on one screen."""
        runs = (list(run) for frame, run in groupby(paid.transcript.turns, lambda turn: turn.frame) if frame)
        longest = max(runs, key=len, default=[])
        if len(longest) < self.turns:
            return None
        return Hit(longest[0].index, f"{len(longest)} turns on the same screen")
