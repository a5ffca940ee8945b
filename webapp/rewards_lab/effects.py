"""What another reward would have changed: spread, groups without a signal, signs of advantages, farming.

Solved is what the agent ended. A state that a limit ended is neither solved nor failed: whether to pay it is
the preset's own choice, so it stands beside both.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from training.contracts.outcome import Outcome
from training.statistics.agreement import rank_correlation
from webapp.rewards_lab.slices import Rewarded, StoredSlice
from webapp.trajectories.models import EQUAL_REWARDS_STD

NUM_BINS = 24
NUM_EXAMPLES = 8
UNRELATED = 0.1
"""A term whose rank correlation with the score is below it does not tell solved from failed."""
Floats = np.ndarray
Texts = np.ndarray


@dataclass(frozen=True, slots=True)
class TermEffect:
    """One term over the slice."""

    name: str
    solved: float | None
    """Mean contribution; None without solved ones."""
    at_limit: float | None
    """To full scores that a limit ended."""
    failed: float | None
    most_failed: float | None
    """Largest contribution to a failed trajectory."""
    correlation: float | None
    """Rank correlation with the score; None where either never changes."""
    can_be_farmed: bool
    """It pays failed trajectories, and no more for solved ones."""


@dataclass(frozen=True, slots=True)
class Effects:
    """Numbers of one preset against the stored rewards."""

    mean: float
    correlation: float | None
    became_flat: list[int]
    """Groups."""
    became_uneven: list[int]
    num_flat: int
    num_groups: int
    """Of two or more."""
    turned: list[tuple[int, float, float]]
    """(trajectory, stored advantage, new one) whose signs differ, the largest move first."""
    num_turned: int
    inverted: list[int]
    """Groups in which a failed member is rewarded at least as much as a solved one."""
    farmed: list[tuple[int, float]]
    """(trajectory, reward) of failed ones, the best paid first."""
    terms: list[TermEffect]


def effects_of(stored: StoredSlice, new: Rewarded) -> Effects:
    """Everything that the page tells of a preset."""
    rows = stored.trajectories
    before = np.array([row.reward for row in rows])
    after = np.array(new.rewards)
    scores = np.array([row.facts.score for row in rows])
    places = _places(np.array([row.group_id for row in rows]))
    flat_before = {group for group, at in places.items() if np.std(before[at]) < EQUAL_REWARDS_STD}
    flat_after = {group for group, at in places.items() if np.std(after[at]) < EQUAL_REWARDS_STD}
    turned = _turned(before, after, places)
    outcomes = np.array([str(row.outcome) for row in rows])
    failed = np.flatnonzero(outcomes == Outcome.FAILED)
    best_failed = failed[np.argsort(-after[failed], kind="stable")][:NUM_EXAMPLES]
    return Effects(
        mean=float(after.mean()),
        correlation=rank_correlation(after, scores),
        became_flat=sorted(flat_after - flat_before),
        became_uneven=sorted(flat_before - flat_after),
        num_flat=len(flat_after),
        num_groups=len(places),
        turned=[(rows[at].pk, float(old), float(now)) for at, old, now in turned[:NUM_EXAMPLES]],
        num_turned=len(turned),
        inverted=sorted(group for group, at in places.items() if _is_inverted(after[at], outcomes[at])),
        farmed=[(rows[at].pk, float(after[at])) for at in best_failed if after[at] > 0],
        terms=[_term(name, np.array(parts), scores, outcomes) for name, parts in new.contributions.items()],
    )


def _places(groups: Floats) -> dict[int, Floats]:
    """Group -> places of its members, for groups of two or more."""
    order = np.argsort(groups, kind="stable")
    names, starts = np.unique(groups[order], return_index=True)
    members = zip(names, np.split(order, starts[1:]), strict=True)
    return {int(name): at for name, at in members if len(at) > 1}


def _turned(before: Floats, after: Floats, places: dict[int, Floats]) -> list[tuple[int, float, float]]:
    """(place, stored advantage, new one) of members on the other side of their group's mean."""
    found = []
    for at in places.values():
        old, now = before[at] - before[at].mean(), after[at] - after[at].mean()
        differ = (old * now < 0) & (np.minimum(abs(old), abs(now)) >= EQUAL_REWARDS_STD)
        found += [(int(at[index]), old[index], now[index]) for index in np.flatnonzero(differ)]
    return sorted(found, key=lambda row: -abs(row[2] - row[1]))


def _is_inverted(rewards: Floats, outcomes: Texts) -> bool:
    solved, failed = rewards[outcomes == Outcome.SOLVED], rewards[outcomes == Outcome.FAILED]
    return bool(len(solved) and len(failed) and failed.max() >= solved.min())


def _term(name: str, parts: Floats, scores: Floats, outcomes: Texts) -> TermEffect:
    ends = (Outcome.SOLVED, Outcome.SOLVED_AT_LIMIT, Outcome.FAILED)
    solved, at_limit, failed = (parts[outcomes == end] for end in ends)
    correlation = rank_correlation(parts, scores)
    pays_failed = bool(len(failed)) and failed.max() > EQUAL_REWARDS_STD
    return TermEffect(
        name=name,
        solved=float(solved.mean()) if len(solved) else None,
        at_limit=float(at_limit.mean()) if len(at_limit) else None,
        failed=float(failed.mean()) if len(failed) else None,
        most_failed=float(failed.max()) if len(failed) else None,
        correlation=correlation,
        can_be_farmed=pays_failed and (correlation is None or correlation < UNRELATED),
    )


@dataclass(frozen=True, slots=True)
class Bin:
    """One bar per series, as a share of the highest of all, %."""

    low: float
    high: float
    counts: list[int]
    heights: list[float]


def distribution(series: Sequence[Sequence[float]]) -> list[Bin]:
    """The same bins over all series; none without values."""
    values = np.concatenate([np.array(one) for one in series]) if series else np.array([])
    if not len(values):
        return []
    edges = np.histogram_bin_edges(values, NUM_BINS)
    counts = [np.histogram(one, edges)[0] for one in series]
    most = max(int(one.max()) for one in counts)
    return [
        Bin(
            float(edges[at]),
            float(edges[at + 1]),
            [int(one[at]) for one in counts],
            [100 * int(one[at]) / most for one in counts],
        )
        for at in range(NUM_BINS)
    ]
