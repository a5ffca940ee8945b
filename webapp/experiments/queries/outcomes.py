"""How trajectories came out, as conditions of queries; `training.contracts.outcome` is the rule."""

from django.db.models import Q

from training.contracts.outcome import SOLVED_SCORE
from training.contracts.types import TrajectoryStatus


def solved_by_agent(prefix: str = "") -> Q:
    """What the agent solved and ended; `prefix`: the way to the trajectory, as "trajectories__"."""
    return Q(**{f"{prefix}status": TrajectoryStatus.TERMINATED, f"{prefix}score__gte": SOLVED_SCORE})


def solved_at_limit() -> Q:
    """What reached its state and went on until a limit."""
    return Q(status=TrajectoryStatus.TRUNCATED, score__gte=SOLVED_SCORE)
