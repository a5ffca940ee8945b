"""waiting.v1: 0.3 x share of turns that only waited."""

from training.contracts.types import ActionKind
from training.rewards.term import Episode, TermValue, capped_penalty


def waiting(episode: Episode) -> TermValue:
    waits = [turn.action is not None and turn.action.kind is ActionKind.WAIT for turn in episode.turns]
    return capped_penalty(waits, rate=0.3, cap=0.3)
