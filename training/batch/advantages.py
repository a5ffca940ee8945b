"""Advantages relative to the group, by group id and with real members only.

    A_i = (R_i - mean_g) / (max(std_g, floor) + 1e-6)    with scale, unbiased std over the scored members
    A_i =  R_i - mean_g                         without scale (Dr. GRPO)
    A_i =  R_i - mean_{j != i} R_j = n / (n - 1) (R_i - mean_g)      leave one out (RLOO)

With a turn discount d every turn has a reward of its own, r_it = d^(T_i - 1 - t) R_i, and an
advantage A_it against the group; a trajectory counts once in mean and std whatever its number
of turns:  mean_g = mean_i mean_t r_it,  std_g^2 = sum_i mean_t (r_it - mean_g)^2 / (n - 1).

With the states that turns began in, `credit: shared_states`, a turn's advantage is the change of value that
it made (`training.statistics.turn_values`), over the same divisor:  A_it = V(node_i,t+1) - V(node_it).
With `credit: branches`, V of some states is the mean reward of k continuations from there, and the turns that
continuation j took itself have  A_j = R_j - V,  over the divisor of the group that it came from.

Sources: GRPO, DeepSeekMath (arXiv 2402.03300) eq. 4, unbiased std and epsilon as in slime; RLOO,
arXiv 2402.14740; turn discount as in AReaL's OSWorld example, where the last turn's reward is
discounted to earlier ones, but normalised in the group instead of in the batch.
The floor is a share of the reward's range (`algorithm.least_deviation`), so that crumbs of a shaping term
do not weigh like a success: NVIDIA-NeMo/RL#4158 tells of the noise of nearly equal rewards. A floor of 0
is slime's formula.

Errored and cancelled members are not there: an error is never a reward. A group with fewer
than two scored members has no baseline; it is dropped and counted. A group whose rewards
are all equal (std < 1e-6) has zero advantages; whether it stays is the caller's decision.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from training.statistics.turn_values import NodeValue, turn_values

EPSILON = 1e-6
"""Added to the standard deviation; also the bound below which a group has zero variance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchRewards:
    """Continuations of one trajectory from the state before one of its turns."""

    parent: int
    """trajectory_id"""
    turn: int
    rewards: Mapping[int, float]
    """trajectory_id of the continuation -> reward; one or more."""
    num_turns: Mapping[int, int]
    """trajectory_id of the continuation -> its turns, those before included."""

    @property
    def value(self) -> NodeValue:
        """Of that state."""
        return NodeValue(math.fsum(self.rewards.values()) / len(self.rewards), len(self.rewards))


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedStates:
    """What siblings saw, to credit single turns."""

    of_turns: Mapping[int, Sequence[str]]
    """trajectory_id -> the state that each turn began in."""
    least_visits: int
    """Trajectories from which on a state counts."""
    branches: Sequence[BranchRewards] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAdvantages:
    """The advantages of one group.

    Example: rewards {1: 1.0, 2: 0.0} give advantages {1: 0.707, 2: -0.707}.
    """

    advantages: dict[int, float]
    """trajectory_id -> advantage, the mean over its turns."""
    mean: float
    std: float
    """Unbiased, over the scored members."""
    has_zero_variance: bool
    """All rewards of the members are equal, before any discount."""
    turns: dict[int, tuple[float, ...]] = field(default_factory=dict)
    """trajectory_id -> advantage of each turn; empty where all turns have their trajectory's."""


def group_advantages(
    rewards: Mapping[int, float],
    *,
    scale: bool,
    baseline: str = "group_mean",
    num_turns: Mapping[int, int] | None = None,
    discount: float = 1.0,
    floor: float = 0.0,
    states: SharedStates | None = None,
) -> GroupAdvantages | None:
    """Advantages of the scored members {trajectory_id: reward}; None when there are fewer than two.

    `num_turns` {trajectory_id: turns} is needed only with a `discount` below 1; `floor` is the least that
    `scale` divides by. With `states`, turns are credited by them, and those of branches are there as well.
    """
    if len(rewards) < 2:
        return None
    mean, std = mean_and_std(list(rewards.values()))
    flat = are_equal(list(rewards.values()))
    if discount < 1 and num_turns is not None:
        rows = {
            key: [reward * discount**later for later in reversed(range(max(1, num_turns[key])))]
            for key, reward in rewards.items()
        }
        mean, std = _mean_and_std_of_rows(list(rows.values()))
    else:
        rows = {key: [reward] for key, reward in rewards.items()}
    divisor = max(std, floor) + EPSILON if scale else 1.0
    if states is not None:
        changes = _changes(rewards, states)
    else:
        bases = {key: mean if baseline == "group_mean" else _mean_of_others(rows, key) for key in rows}
        changes = {key: [reward - bases[key] for reward in row] for key, row in rows.items()}
    turns = {key: tuple(0.0 if flat else change / divisor for change in row) for key, row in changes.items()}
    advantages = {key: row[0] if len(row) == 1 else math.fsum(row) / len(row) for key, row in turns.items()}
    return GroupAdvantages(
        advantages=advantages,
        mean=mean,
        std=std,
        has_zero_variance=flat,
        turns=turns if discount < 1 or states is not None else {},
    )


def _changes(rewards: Mapping[int, float], states: SharedStates) -> dict[int, list[float]]:
    """By how much each turn changed the value; one that never began is worth nothing."""
    measured: dict[int, dict[int, NodeValue]] = {}
    for branch in states.branches:
        measured.setdefault(branch.parent, {})[branch.turn] = branch.value
    values = turn_values(rewards, states.of_turns, states.least_visits, measured)
    changes = {key: [turn.change for turn in values[key]] or [0.0] for key in rewards}
    for branch in states.branches:
        for key, reward in branch.rewards.items():
            own = branch.num_turns[key] - branch.turn
            changes[key] = [0.0] * branch.turn + [reward - branch.value.mean] * own or [0.0]
    return changes


def _mean_and_std_of_rows(rows: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Over trajectories of the mean over their turns; unbiased."""
    mean = math.fsum(math.fsum(row) / len(row) for row in rows) / len(rows)
    squares = (math.fsum((value - mean) ** 2 for value in row) / len(row) for row in rows)
    return mean, math.sqrt(math.fsum(squares) / (len(rows) - 1))


def _mean_of_others(rows: Mapping[int, Sequence[float]], key: int) -> float:
    others = [math.fsum(row) / len(row) for other, row in rows.items() if other != key]
    return math.fsum(others) / len(others)


def are_equal(rewards: Sequence[float]) -> bool:
    """Whether a group with these rewards of its scored members has no variance: it teaches nothing."""
    return mean_and_std(rewards)[1] < EPSILON


def mean_and_std(values: Sequence[float]) -> tuple[float, float]:
    """Mean and unbiased standard deviation; (nan, 0) for none, std 0 for one value."""
    if not values:
        return math.nan, 0.0
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return mean, 0.0
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
