"""An episode with its reward: what was done turn by turn, when it ended, and what that is worth.

    begun -> step* -> ended (the agent said so, or `max_turns` is reached): scored and rewarded once
The reward is that of Deskhand's presets, the same function that its own trainer uses.
"""

from dataclasses import dataclass, field
from typing import Protocol

from training.contracts.config.reward_presets import RewardConfig
from training.contracts.types import Action, Observation, Task, Turn
from training.rewards.compute import Reward, compute_reward
from workers.desktops.contract import EnvError, ErrorKind
from workers.desktops.frame import Frame
from workers.env.measured_turn import measured_turn
from workers.environments.agent_hands import Done
from workers.environments.contract import Environment
from workers.environments.milestone_watch import MilestoneWatch


class Steps(Protocol):
    @property
    def environment(self) -> Environment: ...

    @property
    def done(self) -> Done:
        """What became of the last step's actions."""

    def step(self, program: list[Action]) -> Frame: ...

    def evaluate(self) -> float: ...


@dataclass(slots=True)
class RewardedEpisode:
    """The turns of one attempt at a task."""

    task: Task
    rewards: RewardConfig
    max_turns: int
    frame: Frame
    """What the agent sees now."""
    turns: list[Turn] = field(default_factory=list)
    score: float | None = None
    reward: Reward | None = None
    is_truncated: bool = False
    watch: MilestoneWatch | None = None
    """Since the first turn."""

    @property
    def is_done(self) -> bool:
        return self.reward is not None

    @property
    def error(self) -> str:
        """Why the last action was not done; "" when it was."""
        last = self.turns[-1] if self.turns else None
        return (last.parse_error or last.action_error or "") if last else ""

    def step(self, episode: Steps, program: list[Action], parse_error: str = "") -> None:
        """One turn; a refused action is the agent's mistake and counts. Raises EnvError of other kinds.

        The last turn is scored at once. Raises EvaluatorError: an error is never a reward.
        """
        refused = ""
        try:
            seen = episode.step(program)
        except EnvError as error:
            if error.kind is not ErrorKind.TASK:
                raise
            refused = str(error)
            seen = episode.environment.observe()
        before, self.frame = self.frame, seen
        tried = episode.done.tried if program else ()
        action = tried[-1] if tried else None
        turn = Turn(
            index=len(self.turns),
            observation=Observation(sha256=before.sha256, width=before.width, height=before.height),
            action=action,
            earlier_actions=tried[:-1],
            parse_error=parse_error or None,
            action_error=refused or None,
            screen_changed=before.raw_digest != seen.raw_digest,
            measured=measured_turn(action, before, seen),
        )
        self.turns.append(turn)
        self._watch(episode).look(turn.index)
        claims = bool(program) and program[-1].status is not None and not refused
        self.is_truncated = not claims and len(self.turns) >= self.max_turns
        if claims or self.is_truncated:
            self._judge(episode)

    def end(self, episode: Steps) -> None:
        """The client goes no further: truncated and scored as it stands. Raises EvaluatorError."""
        if not self.is_done:
            self.is_truncated = True
            self._judge(episode)

    def _judge(self, episode: Steps) -> None:
        self.score = episode.evaluate()
        watch = self._watch(episode)
        watch.look(len(self.turns) - 1, is_last=True)
        self.reward = compute_reward(
            self.turns,
            self.score,
            self.rewards,
            max_turns=self.max_turns,
            milestones=watch.reached,
            num_milestones=len(self.task.milestones),
        )

    def _watch(self, episode: Steps) -> MilestoneWatch:
        self.watch = self.watch or MilestoneWatch(self.task, episode.environment)
        return self.watch
