"""One task's proof on a desktop: its oracle scores 1, doing nothing scores 0."""

import time
from dataclasses import dataclass

from training.contracts.types import Action, ActionKind, Observation, Source, Task, Turn
from workers.desktops.leased_desktop import DesktopEnv
from workers.tasks import prepare_and_score
from workers.tasks.oracles import next_action

IDLE = Action(kind=ActionKind.TERMINATE, status="success")


@dataclass(frozen=True, slots=True)
class Proof:
    """What one task scored."""

    task_id: str
    oracle_score: float
    idle_score: float
    num_turns: int
    """Turns of the oracle."""
    first_frames: frozenset[str]
    """First screens of the two episodes: one and the same, or what is set up differs from time to time."""
    wall_s: float
    """Both episodes, resets included."""

    @property
    def holds(self) -> bool:
        return self.oracle_score == 1.0 and self.idle_score == 0.0


def prove(task: Task, env: DesktopEnv) -> Proof:
    """Run both episodes of `task`. Raises TaskError or EnvError."""
    started = time.monotonic()
    idle_score, first = run_idle(task, env)
    oracle_score, turns = run_oracle(task, env)
    frames = frozenset((first, turns[0].observation.sha256))
    return Proof(task.task_id, oracle_score, idle_score, len(turns), frames, time.monotonic() - started)


def run_idle(task: Task, env: DesktopEnv) -> tuple[float, str]:
    """Score of an agent that says at once that it is done, and what it saw."""
    env.reset()
    prepare_and_score.setup(task, env)
    frame = env.observe()
    return prepare_and_score.evaluate(task, env, IDLE), frame.sha256


def run_oracle(task: Task, env: DesktopEnv) -> tuple[float, list[Turn]]:
    """Score of the oracle, and its turns."""
    env.reset()
    prepare_and_score.setup(task, env)
    frame = env.observe()
    turns: list[Turn] = []
    while True:
        action = next_action(task, turns)
        seen = Observation(sha256=frame.sha256, width=frame.width, height=frame.height)
        turns.append(Turn(index=len(turns), source=Source.ORACLE, observation=seen, action=action))
        if action.kind is ActionKind.TERMINATE:
            return prepare_and_score.evaluate(task, env, action), turns
        env.act(action)
        frame = env.observe()
