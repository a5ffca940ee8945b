"""What the trainer may ask of its coordinator (the gpu worker), and the table of its routes."""

from typing import Any, Literal

from pydantic import Field

from training.contracts.eye_test import EyeTestAnswer, EyeTestRequest
from training.contracts.route_types import Nothing, Route
from training.contracts.trainer_reports import (
    CheckpointDeleted,
    CheckpointReport,
    EvaluationResult,
    MemberUpdate,
    MetricsReport,
    ProgressReport,
    ReplaySkip,
    ReplayUse,
    StageReport,
    StepAlarms,
)
from training.contracts.types import Control, Group, Purpose, Source, Task, Trajectory, Wire
from training.contracts.weight_requests import WEIGHTS_REQUEST, Canary, WeightsAnswer, WeightsRequest


class TaskQuery(Wire):
    """Which tasks."""

    split: Literal["train", "heldout"] | None = None
    """None = both."""
    for_sft: bool | None = None
    """True: those of `sft.families`, where it names some."""


class SampleGroup(Wire):
    """A group that shall be sampled."""

    task_id: str
    size: int = Field(ge=1)
    """Trajectories."""
    purpose: Purpose
    step: int = 0
    """Of a train group, the optimiser step that it is for, from 1; of an evaluation, the finished steps."""
    source: Source = Source.POLICY
    temperature: float = Field(default=1.0, ge=0, allow_inf_nan=False)
    policy_version: int | None = None
    parent_id: int | None = Field(default=None, exclude_if=lambda parent: parent is None)
    """Of a branch, the trajectory that is continued."""
    branch_turn: int = Field(default=0, ge=0, exclude_if=lambda turn: not turn)
    """The first turn that is taken anew."""


class GroupId(Wire):
    """A group of this experiment."""

    group_id: int


class FinishedQuery(Wire):
    """A long poll for finished groups."""

    after: int = 0
    """Cursor of the last answer, 0 at first."""
    wait: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """Seconds to wait for the first."""


class FinishedGroups(Wire):
    """One answer of the long poll."""

    cursor: int
    groups: tuple[Group, ...]


class ReplayQuery(Wire):
    """Whose curated successes."""

    task_id: str


class ReplayCandidate(Wire):
    """A curated success that the coordinator offers for a failed group."""

    entry_id: int
    label: str
    """accepted | gold"""
    policy_age: int | None = None
    """Policy versions between the policy that sampled it and this experiment's now, where both come from
    the same weights; None when they do not, or no policy sampled it."""
    trajectory: Trajectory
    """Re-scored with this experiment's reward preset."""


class ReplayCandidates(Wire):
    """Best first."""

    entries: tuple[ReplayCandidate, ...]


class CheckpointPaths(Wire):
    """Folders of checkpoints."""

    paths: tuple[str, ...]


class CheckpointSize(Wire):
    """A checkpoint that is about to be written."""

    folder: str
    num_bytes: int = Field(ge=0)
    """As large as the last one, or an estimate from above."""


class RoomAnswer(Wire):
    """Whether it may be written."""

    shortage: str = ""
    """Which disk lacks how much; "" = there is room."""


class WeightsSynced(WeightsAnswer):
    """The policy server's answer with its canary, which comes with new weights."""

    canary: Canary | None = None


class EngineCommand(Wire):
    """What a colocated engine shall do with the GPUs' memory."""

    command: Literal["sleep", "wake"]


class ControlAnswer(Wire):
    """What is wanted of the trainer."""

    command: Control
    needs_weights: bool = False
    """A part of the engine was started again and generates only after a weight sync."""


class FrameName(Wire):
    """A lossless frame."""

    sha256: str = Field(pattern=r"^[0-9A-Za-z]+$")


TASKS = Route(
    "GET",
    "/tasks",
    TaskQuery,
    list[Task],
    "Supported tasks of the experiment's set, families and levels, in stable order.",
)
SAMPLE_GROUP = Route(
    "POST", "/groups", SampleGroup, GroupId, "Queue the trajectories of a group; returns at once."
)
FINISHED_GROUPS = Route(
    "GET",
    "/groups/finished",
    FinishedQuery,
    FinishedGroups,
    "Long poll: groups of this attempt whose members are all final, each once per cursor, in "
    "finishing order.",
)
CANCEL_GROUP = Route(
    "POST", "/groups/{group_id}/cancel", GroupId, Nothing, "Stop a group of this experiment."
)
DEMONSTRATIONS = Route(
    "GET",
    "/demonstrations",
    Nothing,
    list[Trajectory],
    "Finished oracle trajectories with score 1 on the task set's train split, one per task. Requested "
    "between waits, so it must answer quickly.",
)
REPLAY = Route(
    "GET",
    "/replay",
    ReplayQuery,
    ReplayCandidates,
    "Usable replay entries of a train task, re-scored with the experiment's reward preset.",
)
REPLAY_USES = Route("POST", "/replay/uses", list[ReplayUse], Nothing, "Which entries were injected where.")
REPLAY_SKIPS = Route(
    "POST", "/replay/skips", list[ReplaySkip], Nothing, "Which entries could not be used, and why."
)
STAGE = Route("POST", "/stage", StageReport, Nothing, "A stage started or finished.")
PROGRESS = Route("POST", "/progress", ProgressReport, Nothing, "How far the running stage is.")
METRICS = Route("POST", "/metrics", MetricsReport, Nothing, "Metric points of a step.")
MEMBERS = Route(
    "POST",
    "/members",
    list[MemberUpdate],
    Nothing,
    "Advantages of the trajectories that a step used, after it.",
)
EVALUATIONS = Route("POST", "/evaluations", EvaluationResult, Nothing, "A held-out evaluation.")
CHECKPOINTS = Route(
    "POST",
    "/checkpoints",
    CheckpointReport,
    Nothing,
    "A checkpoint is complete; again with the same path when an evaluation or a pause adds to it.",
)
RESUMED = Route(
    "POST",
    "/checkpoints/resumed",
    CheckpointReport,
    Nothing,
    "Where this attempt goes on; recorded when it was complete on disk and never reported.",
)
CHECKPOINT_DELETED = Route(
    "POST", "/checkpoints/deleted", CheckpointDeleted, Nothing, "A checkpoint is gone."
)
CHECKPOINTS_IN_USE = Route(
    "GET",
    "/checkpoints/in-use",
    Nothing,
    CheckpointPaths,
    "Own checkpoints that an evaluation, an export or another experiment waits for; requested before "
    "old ones are deleted.",
)
CHECKPOINT_ROOM = Route(
    "POST",
    "/checkpoints/room",
    CheckpointSize,
    RoomAnswer,
    "Requested before a checkpoint, again and again while there is a shortage; the page shows it.",
)
ALARMS = Route("POST", "/alarms", StepAlarms, Nothing, "Guards that fired at a step; the others may clear.")
_weights_request: Any = WEIGHTS_REQUEST
WEIGHTS: Route[WeightsRequest, WeightsSynced] = Route(
    "POST",
    "/weights",
    _weights_request,
    WeightsSynced,
    "One step of a weight sync, passed to the policy server; 409 when it refuses. `canary` comes "
    "after `load` and `commit`; the trainer computes its own logprobs of it and reports `sync/drift`.",
)
EYES = Route(
    "POST",
    "/eyes",
    EyeTestRequest,
    EyeTestAnswer,
    "What the policy server's engine reads, before evaluations; the trainer compares its own logprobs.",
)
ENGINE = Route(
    "POST",
    "/engine",
    EngineCommand,
    Nothing,
    "A colocated engine gives the GPUs' memory during the optimiser step; errors end the attempt.",
)
CONTROL = Route(
    "GET",
    "/control",
    Nothing,
    ControlAnswer,
    "Requested between steps and while waiting. `needs_weights`: a part of the engine was started again and "
    "generates only after a weight sync.",
)
FRAME = Route(
    "GET",
    "/frames/{sha256}",
    FrameName,
    bytes,
    "The lossless PNG; the same bytes as `DESKHAND_FRAMES_DIR/ab/SHA256.png`.",
)

ROUTES: tuple[Route[Any, Any], ...] = tuple(value for value in vars().values() if isinstance(value, Route))
"""All of the above."""
