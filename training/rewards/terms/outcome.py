"""Reward terms of the result: the score, the turns that it took, and whether the agent ended it."""

from training.contracts.types import ActionKind
from training.rewards.term import ScoredTrajectory, TermFunction, TermValue

DONE_BONUS = 0.2


def task_score(trajectory: ScoredTrajectory) -> TermValue:
    """What the evaluator says of the final desktop, in [0, 1]."""
    return TermValue(trajectory.score)


def success_turns(trajectory: ScoredTrajectory) -> TermValue:
    """Turns used, as a share of the limit, of a success.

    Failures cost nothing here: a cost of every turn would teach a failing policy to give up early.
    """
    used = trajectory.num_turns / max(1, trajectory.max_turns)
    return TermValue(trajectory.score * min(1.0, used))


def ended_score(trajectory: ScoredTrajectory) -> TermValue:
    """The score of a trajectory that the agent ended itself; 0 where a limit did, whatever was reached."""
    is_ended = _last_kind(trajectory) is ActionKind.TERMINATE
    note = "" if is_ended or not trajectory.score else "the agent did not end it"
    return TermValue(trajectory.score if is_ended else 0.0, note)


def ended_success_turns(trajectory: ScoredTrajectory) -> TermValue:
    """Turns used, as a share of the limit, of a success that the agent ended itself."""
    is_ended = _last_kind(trajectory) is ActionKind.TERMINATE
    return success_turns(trajectory) if is_ended else TermValue(0.0)


def _last_kind(trajectory: ScoredTrajectory) -> ActionKind | None:
    return trajectory.turns[-1].kind if trajectory.turns else None


def efficiency(trajectory: ScoredTrajectory) -> TermValue:
    """Share of the turn limit that was left; 1 without turns."""
    if not trajectory.turns:
        return TermValue(1.0, "no turns")
    left = trajectory.max_turns - trajectory.num_turns
    return TermValue(max(0.0, left / max(1, trajectory.max_turns)))


def done_bonus(trajectory: ScoredTrajectory) -> TermValue:
    """0.2 for an agent that reports success itself, as far as score + bonus stay within 1."""
    last = trajectory.turns[-1] if trajectory.turns else None
    is_done = last is not None and last.kind is ActionKind.TERMINATE and last.claim == "success"
    return TermValue(min(DONE_BONUS, max(0.0, 1.0 - trajectory.score)) if is_done else 0.0)


TERMS: dict[str, TermFunction] = {
    "task_score.v1": task_score,
    "ended_score.v1": ended_score,
    "success_turns.v1": success_turns,
    "ended_success_turns.v1": ended_success_turns,
    "efficiency.v1": efficiency,
    "done_bonus.v1": done_bonus,
}
