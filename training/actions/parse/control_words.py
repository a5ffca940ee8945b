"""Dialect words: OSWorld's control words WAIT, DONE and FAIL, alone in a completion."""

from __future__ import annotations

from training.actions.parse.argument_values import Found, Points
from training.contracts.types import Action, ActionKind

NAME = "words"
WORDS = {
    "WAIT": Action(kind=ActionKind.WAIT, seconds=1.0),
    "DONE": Action(kind=ActionKind.TERMINATE, status="success"),
    "FAIL": Action(kind=ActionKind.TERMINATE, status="failure"),
}


def start(text: str) -> int | None:
    """0 when the whole text is a control word, else None."""
    return 0 if _bare(text) in WORDS else None


def parse(text: str, points: Points) -> Found:
    """The control word that is the whole text."""
    return Found((WORDS[_bare(text)],))


def _bare(text: str) -> str:
    return text.strip("` \n").upper()
