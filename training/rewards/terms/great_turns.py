"""great_turns.v1: share of good turns that also changed the screen or ended the episode (Windows seed)."""

from training.contracts.types import ActionKind, Turn
from training.rewards.term import Episode, TermValue, fraction, is_executed


def great_turns(episode: Episode) -> TermValue:
    return fraction([_is_great(turn) for turn in episode.turns])


def _is_great(turn: Turn) -> bool:
    if turn.action is None or not is_executed(turn):
        return False
    return turn.action.kind is ActionKind.TERMINATE or bool(turn.screen_changed)
