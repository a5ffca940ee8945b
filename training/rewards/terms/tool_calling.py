"""tool_calling.v1: variety and number of actions, as Slime-OSWorld counts them (low complexity).

0.4 x min(1, kinds / 3) + 0.4 x complexity + 0.2 x min(1, modalities / 2)
complexity: 1 for 2 to 5 turns, turns / 2 below, max(0.5, 5 / turns) above
"""

from training.rewards.term import Episode, TermValue, kind_of

MODALITIES = ("click", "type", "key", "scroll", "drag", "wait")
LOW_TURNS, HIGH_TURNS = 2, 5


def tool_calling(episode: Episode) -> TermValue:
    if not episode.turns:
        return TermValue(0.0)
    kinds = {kind_of(turn) for turn in episode.turns} - {"unknown"}
    modalities = {word for word in MODALITIES if any(word in kind for kind in kinds)}
    value = (
        0.4 * min(1.0, len(kinds) / 3)
        + 0.4 * _complexity(episode.num_turns)
        + 0.2 * min(1.0, len(modalities) / 2)
    )
    return TermValue(value)


def _complexity(num_turns: int) -> float:
    if num_turns < LOW_TURNS:
        return num_turns / LOW_TURNS
    if num_turns > HIGH_TURNS:
        return max(0.5, HIGH_TURNS / num_turns)
    return 1.0
