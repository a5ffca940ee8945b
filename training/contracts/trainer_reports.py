"""What the trainer reports of its stages, steps, evaluations, checkpoints and alarms."""

from enum import StrEnum
from typing import Literal

from pydantic import ConfigDict, Field

from training.contracts.eye_test import EyeTest
from training.contracts.stage_names import StageName
from training.contracts.types import Wire

LEAST_SCORED = 0.95
"""Share of an evaluation's trajectories that must have a score."""


class Report(Wire):
    """Base of all reports: numbers are finite."""

    model_config = ConfigDict(allow_inf_nan=False)


class StageReport(Report):
    """A stage started or finished."""

    name: StageName
    status: Literal["started", "finished"]
    total: int = 0
    """Units of work that it will do."""
    unit: str = ""
    """steps | tasks | trajectories"""


class ProgressReport(Report):
    """How far the running stage is."""

    stage: StageName
    done: int
    total: int


class MetricsReport(Report):
    """Metric points of a step."""

    step: int
    values: dict[str, float]
    """Names are area/name."""
    policy_version: int = 0


class CheckpointReport(Report):
    """A checkpoint is complete on disk; again with the same path when an evaluation or a pause adds to it."""

    step: int
    """Finished steps of the stage that it was saved in."""
    path: str
    policy_version: int
    is_best: bool = False
    success: float | None = None
    """Share of held-out tasks that its weights solve and end; None when they were not evaluated."""
    bytes: int = 0


class CheckpointDeleted(Report):
    """An old checkpoint was removed from disk."""

    path: str


class ReplayUse(Report):
    """One injection of a replay entry, reported by the trainer after the step."""

    entry_id: int
    group_id: int
    step: int
    replaced_trajectory_id: int | None
    """None = it was imitated beside the group, and replaced no member."""
    policy_age: int | None
    """Policy versions between recording and use; None without behaviour logprobs."""
    as_likelihood: bool
    """True when the entry entered as an NLL term, without an importance ratio."""
    advantage: float
    importance_ratio: float | None
    """Mean over its tokens; None for a likelihood term."""


class SkipReason(StrEnum):
    """Why an experiment cannot use a replay entry."""

    NO_ACTION = "no_action"
    """A turn to be learned has no typed action."""
    NOT_WRITABLE = "not_writable"
    """The experiment's dialect has no words for an action."""
    TOO_LONG = "too_long"
    """It does not fit the experiment's token budgets."""
    NOTHING_TO_LEARN = "nothing_to_learn"
    """All of its turns are context only."""
    LOST_SCREENSHOT = "lost_screenshot"
    """A screenshot of it is gone, cut off, or another picture."""
    AT_LIMIT = "at_limit"
    """A limit ended it, and the experiment's rewards pay nothing there: it would teach to go on."""
    TOO_OLD = "too_old"
    """Its policy is older than `replay.max_policy_age`."""
    UNKNOWN_AGE = "unknown_age"
    """Its policy's age is unknown, and `replay.unknown_policy_age` is skip."""


class ReplaySkip(Report):
    """A replay entry that would have been used, but could not be."""

    entry_id: int
    reason: SkipReason
    message: str
    """Which turn or budget it was, in words."""


class MemberUpdate(Report):
    """What the learner knows of a trajectory after its group was used."""

    trajectory_id: int
    advantage: float
    policy_logprob_gap: float | None = None
    """Mean |trainer - behaviour| logprob of its tokens, nats."""


class EvaluationResult(Report):
    """Success over a split at one temperature, with its Wilson interval."""

    name: str
    """sft | before | during | after"""
    step: int
    policy_version: int
    split: str
    temperature: float
    """0 = greedy."""
    samples_per_task: int
    """Trajectories that were asked for."""
    num_tasks: int
    """With a scored trajectory."""
    num_requested: int
    """Trajectories, over all tasks."""
    num_errored: int
    """Of num_requested: without a score, since infrastructure failed or a person cancelled them."""
    num_samples: int
    """Of num_requested: scored trajectories."""
    num_success: int
    """Of num_samples; OSWorld's own rule: a full score, also where a limit ended the trajectory."""
    num_solved_at_limit: int
    """Of num_success: the agent did not end it."""
    num_truncated: int
    """Of num_samples: ended by a limit."""
    num_turns: int
    """Of all scored trajectories."""
    num_unparsable_turns: int
    """Of num_turns: the completion held no action."""
    success: float
    low: float
    """95 % Wilson bounds, had all that are missing failed; and, for `high`, had they succeeded."""
    high: float
    solved: float
    """Share that the agent solved and ended, with its bounds; `success` counts those at a limit too."""
    solved_low: float
    solved_high: float
    per_family: dict[str, tuple[int, int, int]] = Field(default_factory=dict)
    """family -> (successes, scored trajectories, of the successes those at a limit)"""
    by_task: dict[str, tuple[int, int, int, int]] = Field(default_factory=dict)
    """task_id -> (successes, scored trajectories, group_id, of the successes those at a limit)"""
    mean_score: float | None = None
    """Over scored trajectories, where partial scores count in part; None where nothing was scored."""
    score_by_task: dict[str, float] = Field(default_factory=dict)
    """The same of each task."""
    eyes: EyeTest | None = Field(default=None, exclude_if=lambda eyes: eyes is None)
    """What measured it; None = no eye test was made."""

    @property
    def partial(self) -> float:
        """Mean of partial scores, full ones counted as 0: they say nothing of how a trajectory ended."""
        return 0.0 if self.mean_score is None else self.mean_score - self.success

    @property
    def graded(self) -> float:
        """Share that the agent solved and ended, where partial scores count in part."""
        return self.solved + self.partial

    @property
    def is_complete(self) -> bool:
        """Whether enough of it was scored to choose by; see `is_complete`."""
        return is_complete(self.num_samples, self.num_requested)


def is_complete(num_scored: int, num_requested: int) -> bool:
    """Whether an evaluation may choose a checkpoint: what errors is seldom a fair sample of the tasks."""
    return num_scored >= LEAST_SCORED * num_requested


class Alarm(Report):
    """A guard that fired: which, with which number, and what to do about it."""

    name: str
    step: int
    value: float
    limit: float
    message: str
    remedy: str
    severity: Literal["warning", "critical"] = "warning"


class StepAlarms(Report):
    """Every guard that fired at a step, none included: alarms that no longer fire clear."""

    step: int
    alarms: tuple[Alarm, ...] = ()
