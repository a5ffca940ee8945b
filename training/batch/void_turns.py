"""Void turns: their completion held no action, so nothing that they did can have earned a reward.

    keep             a void turn has its trajectory's advantage, as any other turn
    no_credit        its advantage is min(A, 0): where A is positive, its tokens leave the loss
    negative         its advantage is min(A, -void_turn_penalty), in groups of equal rewards too
    mask             its tokens leave the loss, also where they would be punished
    mask_trajectory  the tokens of every trajectory with a void turn leave the loss

Rewards, means and deviations of groups stay as they are. Sources: mask_trajectory, SimpleTIR (arXiv
2509.02479); negative, NeMo-RL's advantage for malformed messages. What is imitated has no advantage: there,
void turns leave the loss in every mode but keep.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from training.batch.samples import has_behaviour_logprobs
from training.contracts.config import AlgorithmConfig
from training.contracts.config.algorithm import imitates_successes
from training.contracts.types import Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCredit:
    """What the turns of one trajectory are trained with."""

    trained: frozenset[int]
    """Places of the turns whose tokens carry a loss."""
    advantages: tuple[float, ...]
    """One per turn; empty = the trajectory's for all."""


def void_turns(trajectory: Trajectory) -> frozenset[int]:
    """Places of the turns whose completion could not be parsed."""
    return frozenset(place for place, turn in enumerate(trajectory.turns) if turn.parse_error is not None)


def credit_of_turns(
    trajectory: Trajectory,
    advantage: float,
    by_turn: Sequence[float],
    algorithm: AlgorithmConfig,
    *,
    is_flat: bool,
    is_imitated: bool = False,
) -> TurnCredit:
    """`by_turn`: of a turn discount, or empty. `is_flat`: the equal rewards of its group teach nothing.

    `is_imitated`: an NLL term makes its tokens likelier, whatever their advantage.
    """
    is_imitated = is_imitated or _is_imitated(trajectory, algorithm)
    void, mode = void_turns(trajectory), algorithm.void_turns
    plain = tuple(by_turn) or (advantage,) * len(trajectory.turns)
    trained = _last_turns(trajectory, algorithm)
    if mode == "negative" and not is_imitated:
        lowered = tuple(
            min(value, -algorithm.void_turn_penalty) if place in void else value
            for place, value in enumerate(plain)
        )
        return TurnCredit(
            trained=trained & void if is_flat else trained, advantages=lowered if void else tuple(by_turn)
        )
    if is_flat or (void and mode == "mask_trajectory"):
        trained = frozenset()
    elif mode == "no_credit" and not is_imitated:
        trained -= {place for place in void if plain[place] > 0}
    elif mode != "keep":
        trained -= void
    return TurnCredit(trained=trained, advantages=tuple(by_turn))


def _last_turns(trajectory: Trajectory, algorithm: AlgorithmConfig) -> frozenset[int]:
    places = range(len(trajectory.turns))
    return frozenset(places[-algorithm.train_last_turns :] if algorithm.train_last_turns else places)


def _is_imitated(trajectory: Trajectory, algorithm: AlgorithmConfig) -> bool:
    """Whether an NLL term makes its tokens likelier, whatever their advantage."""
    return (
        imitates_successes(algorithm)
        or algorithm.success_likelihood > 0
        or not has_behaviour_logprobs(trajectory)
    )
