"""Scanners without a model: pure functions of a transcript."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import TypeVar

from webapp.scanners.definition_schemas import (
    ANY,
    ActionSequence,
    Loop,
    Rule,
    StillScreen,
    TextPattern,
)
from webapp.scanners.linear_patterns import matches
from webapp.scanners.shipped_rules import RULES, Hit
from webapp.scanners.transcripts import Paid, Transcript, TranscriptTurn
from webapp.trajectories.turn_display import action_signature

Pattern = TextPattern | ActionSequence | Loop | StillScreen | Rule
T = TypeVar("T")
MAX_QUOTE = 160


def find(pattern: Pattern, paid: Paid) -> Hit | None:
    """What a pattern finds in one trajectory."""
    match pattern:
        case TextPattern():
            return find_text(pattern, paid.transcript)
        case ActionSequence():
            return find_sequence(pattern, paid.transcript)
        case Loop():
            return find_loop(pattern, paid.transcript)
        case StillScreen():
            return find_still(pattern, paid.transcript)
        case Rule():
            return RULES[pattern.rule].find(paid)


def find_text(pattern: TextPattern, transcript: Transcript) -> Hit | None:
    """The first turn whose text matches, when enough of them do."""
    found = [turn for turn in transcript.turns if matches(pattern.pattern, _text(turn, pattern.where))]
    if len(found) < pattern.min_turns:
        return None
    quote = " ".join(_text(found[0], pattern.where).split())[:MAX_QUOTE]
    return Hit(found[0].index, f"{len(found)} turn{'' if len(found) == 1 else 's'}: “{quote}”")


def _text(turn: TranscriptTurn, where: str) -> str:
    if where == "typed":
        return str((turn.action or {}).get("text") or "")
    if where == "errors":
        return turn.errors
    return turn.screen_text if where == "screen text" else turn.said


def find_sequence(pattern: ActionSequence, transcript: Transcript) -> Hit | None:
    """The first place where the sequence stands, so often in a row."""
    wanted = pattern.steps * pattern.times
    kinds = [str((turn.action or {}).get("kind", "")) for turn in transcript.turns]
    for start in range(len(kinds) - len(wanted) + 1):
        there = kinds[start : start + len(wanted)]
        if all(step in (ANY, kind) for step, kind in zip(wanted, there, strict=True)):
            words = ", ".join(pattern.steps)
            often = f", {pattern.times} times" if pattern.times > 1 else ""
            return Hit(transcript.turns[start].index, f"{words}{often}")
    return None


def find_loop(pattern: Loop, transcript: Transcript) -> Hit | None:
    """The first round of equal actions that is repeated often enough; turns without an action end it."""
    done = [action_signature(turn.action) if turn.action else None for turn in transcript.turns]
    for start in range(len(done)):
        for length in range(1, pattern.longest + 1):
            num = _rounds(done, start, length)
            if num >= pattern.times:
                turn = transcript.turns[start]
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


def find_still(pattern: StillScreen, transcript: Transcript) -> Hit | None:
    """The longest run of turns on one screen."""
    _, run = longest_run(transcript.turns, lambda turn: turn.frame)
    if not run or len(run) < pattern.turns:
        return None
    return Hit(run[0].index, f"{len(run)} turns on the same screen")


def longest_run(items: tuple[T, ...], key: Callable[[T], str]) -> tuple[str, list[T]]:
    """(key, items) of the longest run of equal keys that are not empty."""
    runs = [(name, list(run)) for name, run in groupby(items, key) if name]
    return max(runs, key=lambda one: len(one[1]), default=("", []))
