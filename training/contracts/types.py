"""The values that travel between processes: tasks, actions, turns, trajectories, groups.

The only wire format: everything here is JSON by pydantic (`model_dump_json` / `model_validate_json`).
Images never travel; they are named by the sha256 of the lossless PNG that the model saw.

Life of a status:  queued -> resetting -> running -> evaluating -> terminated | truncated
                   resetting <-> parked, while the lender of the desktops has none free
                   any of these -> errored | cancelled
"""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from training.contracts.action import Action as Action
from training.contracts.action import ActionKind as ActionKind
from training.contracts.action import ParsedCompletion as ParsedCompletion
from training.contracts.milestone import ReachedMilestone
from training.contracts.observed_text import Marks, MeasuredTurn, ObservedText
from training.contracts.task import Task as Task
from training.contracts.turn_trace import SpentMs
from training.contracts.wire import Wire


class TrajectoryStatus(StrEnum):
    """Where a trajectory stands. An error is never a reward, truncated is not terminated."""

    QUEUED = "queued"
    RESETTING = "resetting"
    PARKED = "parked"
    """No desktop is to be had yet; it waits without a slot and goes on by itself. Not a failure."""
    RUNNING = "running"
    EVALUATING = "evaluating"
    TERMINATED = "terminated"
    """The agent ended it with a `terminate` action (or its demonstration ended)."""
    TRUNCATED = "truncated"
    """A limit was hit (turns, tokens, time); still evaluated and scored."""
    ERRORED = "errored"
    """Infrastructure, evaluator or policy server failed; never scored, leaves its group."""
    CANCELLED = "cancelled"

    def is_final(self) -> bool:
        return self in FINAL_STATUSES

    def is_scored(self) -> bool:
        """True for the two statuses whose trajectories count in a group."""
        return self in (TrajectoryStatus.TERMINATED, TrajectoryStatus.TRUNCATED)


class Limit(StrEnum):
    """Which limit truncated a trajectory, and so whose number would have to be raised."""

    TASK_TURNS = "task_turns"
    """The task's own `max_turns`, which wins over the config's."""
    TURNS = "turns"
    """`desktops.max_turns`."""
    TOKENS = "tokens"
    """`sampling.max_context_tokens`."""
    TIME = "time"
    """`desktops.trajectory_timeout_s`."""


FINAL_STATUSES = frozenset(
    {
        TrajectoryStatus.TERMINATED,
        TrajectoryStatus.TRUNCATED,
        TrajectoryStatus.ERRORED,
        TrajectoryStatus.CANCELLED,
    }
)

_STOPPED = {TrajectoryStatus.ERRORED, TrajectoryStatus.CANCELLED}
TRAJECTORY_TRANSITIONS: dict[TrajectoryStatus, set[TrajectoryStatus]] = {
    TrajectoryStatus.QUEUED: {TrajectoryStatus.RESETTING} | _STOPPED,
    TrajectoryStatus.RESETTING: {TrajectoryStatus.RUNNING, TrajectoryStatus.PARKED} | _STOPPED,
    TrajectoryStatus.PARKED: {TrajectoryStatus.RESETTING} | _STOPPED,
    TrajectoryStatus.RUNNING: {TrajectoryStatus.EVALUATING} | _STOPPED,
    TrajectoryStatus.EVALUATING: {TrajectoryStatus.TERMINATED, TrajectoryStatus.TRUNCATED} | _STOPPED,
    TrajectoryStatus.TERMINATED: set(),
    TrajectoryStatus.TRUNCATED: set(),
    TrajectoryStatus.ERRORED: set(),
    TrajectoryStatus.CANCELLED: set(),
}


class Source(StrEnum):
    """Who chose the actions of a trajectory or turn."""

    POLICY = "policy"
    ORACLE = "oracle"
    """A scripted solver of the task; the SFT data."""
    HUMAN = "human"
    SCRIPTED = "scripted"
    """A fixed action list, for benchmarks and for the do-nothing check."""


class Purpose(StrEnum):
    """Why a group was sampled. Only TRAIN groups meet the optimiser, and branches that it asked for."""

    TRAIN = "train"
    EVALUATION = "evaluation"
    DEMONSTRATION = "demonstration"
    VERIFICATION = "verification"
    BRANCH = "branch"
    """Continued from a saved state of another trajectory; its first turns are that one's."""
    ATTACK = "attack"
    """A script against the evaluator: reward without the task, or a recorded success done again."""


class Observation(Wire):
    """What the policy is shown at one turn."""

    sha256: str
    """Digest of the lossless PNG; "" for a text-only observation."""
    width: int
    """Pixels of that PNG."""
    height: int
    text: str = ""
    """What the policy reads: instruction at turn 0, result of the last action later; then tree and terminal,
    cut, under their headings (`training.observations.turn_text`)."""
    accessibility: ObservedText | None = Field(default=None, exclude_if=lambda read: read is None)
    """The raw tree; None = not part of the observation."""
    terminal: ObservedText | None = Field(default=None, exclude_if=lambda read: read is None)
    marks: Marks | None = Field(default=None, exclude_if=lambda found: found is None)
    """Boxes on its picture; None = it is the plain screenshot."""


class Alternatives(Wire):
    """The likeliest tokens at each place of a completion, for people; training never reads them."""

    token_ids: tuple[tuple[int, ...], ...]
    """The likeliest first, the sampled one where it is among them. [num_tokens, at most 5]"""
    texts: tuple[tuple[str, ...], ...]
    logprobs: tuple[tuple[float, ...], ...]
    """As `behaviour_logprobs`, to 4 decimals."""


class Completion(Wire):
    """What the policy server returned: text with the exact sampled tokens."""

    text: str
    token_ids: tuple[int, ...] = ()
    """Sampled tokens incl. the stop token that the model emitted. [num_tokens]"""
    token_texts: tuple[str, ...] = ()
    """Each token's own text, for people; training never reads it. [num_tokens] or empty"""
    behaviour_logprobs: tuple[float, ...] = ()
    """Logprob of each sampled token at sampling time and temperature, nats. [num_tokens]"""
    alternatives: Alternatives | None = Field(default=None, exclude_if=lambda found: found is None)
    """With `sampling.top_logprobs`; None = not recorded."""
    policy_version: int = 0
    """Of the oldest weights that generated a token of it."""
    policy_versions: tuple[int, ...] = ()
    """Weights that generated each token, when new ones came meanwhile. [num_tokens] or empty = one"""
    finish_reason: Literal["stop", "length"] = "stop"
    num_prompt_tokens: int = 0
    prompt_digest: str = Field(default="", max_length=16, exclude_if=lambda digest: not digest)
    """Of the ids of the tokens before it (`training.render.prompt_digest`); "" = not recorded."""
    fingerprint: str = Field(default="", max_length=300, pattern=r"^[ -~]*$")
    """What made its token ids (`training.contracts.context_fingerprint`); "" = unknown."""
    waited_s: float = Field(default=0.0, ge=0, exclude_if=lambda waited: not waited)
    """Seconds in which no policy could have answered: engine asleep, in a weight sync, or restarting."""
    spent_ms: SpentMs = Field(default_factory=dict, exclude_if=lambda spent: not spent)
    """What the policy server measured of its part; stored with the turn, not with the completion."""


class RewardTerm(Wire):
    """One named part of a reward: contribution = weight * value."""

    name: str
    """Versioned: "task_score.v1"."""
    value: float
    weight: float
    contribution: float
    note: str = ""


class Turn(Wire):
    """One observation, the completion to it, and the action that was executed."""

    index: int
    source: Source = Source.POLICY
    observation: Observation
    completion: Completion | None = None
    """None for oracle, human and scripted turns."""
    action: Action | None = None
    """The last one that was tried."""
    earlier_actions: tuple[Action, ...] = Field(default=(), exclude_if=lambda actions: not actions)
    """Of a completion with several: what was done before it, in order."""
    parse_error: str | None = None
    dialect: str = ""
    action_error: str | None = None
    """Why the desktop refused the action (e.g. off screen), and with it the rest of its completion; the
    episode goes on."""
    screen_changed: bool | None = None
    measured: MeasuredTurn | None = Field(default=None, exclude_if=lambda found: found is None)
    """What it did to screen, accessibility tree and terminal; None = not measured."""
    unsettled: str = Field(default="", exclude_if=lambda why: not why)  # moving, due, later; "" = it rested
    terms: tuple[RewardTerm, ...] = ()
    is_context: bool = False
    """Seen by the learner, but never imitated: it says so, or an imported `step_loss_mask` of 0 does."""

    @property
    def actions(self) -> tuple[Action, ...]:
        """All that were tried, in order."""
        return (*self.earlier_actions, self.action) if self.action else ()


class Trajectory(Wire):
    """The record of one episode."""

    trajectory_id: int
    group_id: int
    task: Task
    source: Source = Source.POLICY
    status: TrajectoryStatus
    turns: tuple[Turn, ...] = ()
    score: float | None = None
    """Evaluator's result in [0, 1]; None unless scored."""
    reward: float | None = None
    """What training uses; None unless scored."""
    limit: Limit | None = None
    """What truncated it; None when nothing did, or when it was not recorded."""
    terms: tuple[RewardTerm, ...] = ()
    milestones: tuple[ReachedMilestone, ...] = ()
    lasted_s: float = Field(default=0.0, ge=0, exclude_if=lambda seconds: not seconds)
    """Seconds on its desktop; 0 = not recorded."""
    error: str = ""
    replay_entry_id: int | None = None
    """Set when this trajectory was injected from the replay buffer."""
    replay_label: str = ""


class Group(Wire):
    """Sibling trajectories of one task, the unit of advantage."""

    group_id: int
    task: Task
    purpose: Purpose
    step: int = 0
    """Of a train group, the optimiser step that it is for, from 1; of an evaluation, the finished steps."""
    trajectories: tuple[Trajectory, ...] = ()
    """All members in their final status, errored ones included."""
    parent_id: int | None = Field(default=None, exclude_if=lambda parent: parent is None)
    """Of a branch, the trajectory that it was continued from."""
    branch_turn: int = Field(default=0, ge=0, exclude_if=lambda turn: not turn)
    """Of a branch, the first turn that its members took themselves."""
    branches: tuple["Group", ...] = Field(default=(), exclude_if=lambda found: not found)
    """Continuations of its members, which credit single turns."""

    def scored(self) -> tuple[Trajectory, ...]:
        """The members that count."""
        return tuple(t for t in self.trajectories if t.status.is_scored() and t.reward is not None)

    def all_scored(self) -> tuple[Trajectory, ...]:
        """The same with those of its branches."""
        return (*self.scored(), *(member for branch in self.branches for member in branch.scored()))


class Control(StrEnum):
    """What the supervisor wants of the trainer."""

    RUN = "run"
    PAUSE = "pause"
    """Finish the step, save a checkpoint, exit 0 with status `paused`."""
    CANCEL = "cancel"
