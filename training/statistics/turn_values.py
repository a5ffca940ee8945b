"""What each turn of a trajectory was worth, from the rewards of those that were in the same state.

Siblings that were in the same state (`training.contracts.screen_state`) share a node; V(node) is their mean
reward, a trajectory counts once. A turn changes the value from its node's to the next node's, the last one to
the trajectory's own reward. Before the first turn all siblings share a node: the state is the task's.

A node counts from `least_visits` trajectories on. Turns between two nodes that count share their difference,
so a trajectory whose states no sibling shares has R - V(start) at every turn, which is plain GRPO. Over the
stretches the changes add up to R - V(start) in any case. A value that was measured by continuations from the
very state before a turn stands in place of its node's.

States that siblings share are the anchors of GiGPO (arXiv 2505.10978), which compares the returns of the
actions that left one; here, a turn is worth the difference of the values on its two sides.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from training.statistics.share_interval import wilson_interval


@dataclass(frozen=True, slots=True)
class NodeValue:
    """Mean reward from a state on, and of how many trajectories."""

    mean: float
    num: int
    is_of_siblings: bool = False
    """Of a group's members: those behind a turn are some of those before it. Continuations are others."""


@dataclass(frozen=True, slots=True)
class TurnValue:
    """Of one turn: the value before and after the stretch of turns that it lies in."""

    before: NodeValue
    after: NodeValue
    first: int
    """Turn, from 0, at which the stretch begins."""
    last: int

    @property
    def change(self) -> float:
        return self.after.mean - self.before.mean


def turn_values(
    rewards: Mapping[int, float],
    states: Mapping[int, Sequence[str]],
    least_visits: int,
    measured: Mapping[int, Mapping[int, NodeValue]] | None = None,
) -> dict[int, tuple[TurnValue, ...]]:
    """Key of a trajectory -> its turns' values.

    `states`: the state that each turn began in, "" = one that none shares; `measured`: key -> turn -> the
    value before it.
    """
    start = NodeValue(_mean(list(rewards.values())), len(rewards), is_of_siblings=True)
    firsts = {row[0] for row in states.values() if row} - {""}
    visitors: dict[str, list[int]] = {}
    for key, row in states.items():
        for state in set(row) - firsts - {""}:
            visitors.setdefault(state, []).append(key)
    nodes = {
        state: NodeValue(_mean([rewards[key] for key in keys]), len(keys), is_of_siblings=True)
        for state, keys in visitors.items()
        if len(keys) >= least_visits
    }
    nodes |= dict.fromkeys(firsts, start)
    found = {}
    for key, row in states.items():
        of_row = {0: start} | {
            place: nodes[row[place]] for place in range(1, len(row)) if row[place] in nodes
        }
        of_row |= {place: value for place, value in (measured or {}).get(key, {}).items() if place < len(row)}
        found[key] = _stretches(len(row), of_row, NodeValue(rewards[key], 1, is_of_siblings=True))
    return found


def _stretches(num_turns: int, values: Mapping[int, NodeValue], end: NodeValue) -> tuple[TurnValue, ...]:
    """`values`: those that are known, by the turn before which they stand; the last turn leads to the end."""
    if not num_turns:
        return ()  # its time ran out before it began
    places, turns = sorted(values), list[TurnValue]()
    for first, following in zip(places, [*places[1:], num_turns], strict=True):
        one = TurnValue(values[first], values.get(following, end), first, following - 1)
        turns += [one] * (following - first)
    return tuple(turns)


def interval_of_change(turn: TurnValue, lowest: float, highest: float) -> tuple[float, float]:
    """95 % interval of its change, for rewards within the limits.

    Of two samples: Newcombe's hybrid score interval (Statistics in Medicine 17, 1998) of two Wilson
    intervals; a mean of values within limits scatters at most like a share. Where some siblings went this
    way and others did not, the change is the share of the others times the difference to them, so that its
    interval is the product of theirs: it excludes 0 only where the difference does.
    """
    size = highest - lowest
    if size <= 0:
        return turn.change, turn.change
    before, after = turn.before, turn.after
    num_others = before.num - after.num
    if not (before.is_of_siblings and after.is_of_siblings and after.num and num_others > 0):
        low, high = _difference(_scaled(before, lowest, size), _scaled(after, lowest, size))
        return low * size, high * size
    mean_of_others = (before.num * before.mean - after.num * after.mean) / num_others
    others = _scaled(NodeValue(mean_of_others, num_others), lowest, size)
    low, high = _difference(others, _scaled(after, lowest, size))
    least, most = wilson_interval(num_others, before.num)
    return low * size * (most if low < 0 else least), high * size * (least if high < 0 else most)


def _difference(one: tuple[float, float, float], other: tuple[float, float, float]) -> tuple[float, float]:
    """Newcombe's interval of the second minus the first, each (share, low, high)."""
    (p, low, high), (q, below, above) = one, other
    return q - p - math.hypot(q - below, high - p), q - p + math.hypot(above - q, p - low)


def _scaled(node: NodeValue, lowest: float, size: float) -> tuple[float, float, float]:
    share = min(1.0, max(0.0, (node.mean - lowest) / size))
    return share, *wilson_interval(share * node.num, node.num)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan
