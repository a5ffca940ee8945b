"""Text: a regular expression."""

from typing import Any, ClassVar, Literal, get_args

from pydantic import Field, field_validator

from training.contracts.number_text import counted
from webapp.scanners.kinds.contract import Hit, Pattern
from webapp.scanners.kinds.text.linear_patterns import check_pattern, matches
from webapp.scanners.transcripts import Paid, TranscriptTurn

Where = Literal["said", "typed", "errors", "screen text"]
MAX_QUOTE = 160


class TextPattern(Pattern):
    """Turns whose text has a match of a regular expression."""

    title: ClassVar[str] = "Text: a regular expression"

    kind: Literal["text"] = "text"
    pattern: str = Field(min_length=1, max_length=500)
    """RE2 syntax: time grows with the text alone."""
    where: Where = "said"
    """said: thoughts and completions; typed: text that actions typed."""
    min_turns: int = Field(default=1, ge=1, le=1000)
    """As many turns have to match."""

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, pattern: str) -> str:
        check_pattern(pattern)
        return pattern

    @classmethod
    def choices(cls) -> dict[str, Any]:
        return {"places": get_args(Where)}

    def find(self, paid: Paid) -> Hit | None:
        """The first turn whose text matches, when enough of them do."""
        found = [turn for turn in paid.transcript.turns if matches(self.pattern, _text(turn, self.where))]
        if len(found) < self.min_turns:
            return None
        quote = " ".join(_text(found[0], self.where).split())[:MAX_QUOTE]
        return Hit(found[0].index, f"{counted(len(found), 'turn')}: “{quote}”")


def _text(turn: TranscriptTurn, where: str) -> str:
    if where == "typed":
        return str((turn.action or {}).get("text") or "")
    if where == "errors":
        return turn.errors
    return turn.screen_text if where == "screen text" else turn.said
