"""A branch without a snapshot: its parent's actions are done again, and every screen must be the parent's."""

from webapp.worker_door.assignments import Branch
from workers.environments.agent_hands import AgentHands
from workers.environments.registry import Environment


class NotReproduced(Exception):
    """Raised when a screen differs from the recorded one: the state is another one than the parent's."""


def redo(environment: Environment, hands: AgentHands, branch: Branch) -> None:
    """Bring a prepared desktop to the branch's turn. Raises NotReproduced, EnvError."""
    recorded = [turn.observation.sha256 for turn in branch.turns]
    for index, turn in enumerate(branch.turns):
        frame = environment.observe()
        _require(frame.sha256, recorded[index], index)
        hands.do(turn.actions, (frame.width, frame.height))
    _require(environment.observe().sha256, branch.screen, len(branch.turns))


def _require(seen: str, recorded: str, index: int) -> None:
    if seen != recorded:
        raise NotReproduced(
            f"the screen before turn {index + 1} is another one than recorded ({seen[:12]}, not "
            f"{recorded[:12] or 'kept'}), so the actions led to another state"
        )
