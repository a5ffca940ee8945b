"""What the API answers with and accepts; experiment configs are `training.contracts.config`'s own models."""

from datetime import datetime
from typing import Any

from ninja import Field, Schema

from training.contracts.config import ExperimentConfig
from training.contracts.types import Source
from training.contracts.types import Trajectory as WireTrajectory


class Me(Schema):
    """The caller."""

    username: str
    teams: dict[str, str]
    """Team name -> role."""


class PresetOut(Schema):
    """A starting point of the launch form."""

    name: str
    title: str
    summary: str
    config: ExperimentConfig


class StageOut(Schema):
    """A part of an experiment and how far it is."""

    name: str
    status: str
    done: int
    total: int
    unit: str
    started_at: datetime | None
    ended_at: datetime | None


class ExperimentRow(Schema):
    """An experiment in a list."""

    id: int
    name: str
    preset: str
    status: str
    stage: str
    step: int
    policy_version: int
    priority: int
    message: str
    team: str = Field(alias="team.name")
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


class EvaluationOut(Schema):
    """Success at one point, with its 95 % Wilson interval."""

    name: str
    step: int
    policy_version: int
    split: str
    num_tasks: int
    num_success: int
    success: float
    low: float
    high: float
    temperature: float | None = None
    """0 = greedy; null when it was not recorded."""


class ExperimentDetail(ExperimentRow):
    """One experiment."""

    note: str
    config: dict[str, Any]
    stages: list[StageOut]
    evaluations: list[EvaluationOut]
    waiting_because: str
    """Why a queued experiment does not run yet; "" otherwise."""


class ExperimentIn(Schema):
    """What to launch: a preset, changed by `config` (nested, only what differs), or a whole `yaml`."""

    name: str = Field(min_length=1, max_length=120)
    preset: str = ""
    config: dict[str, Any] = {}
    yaml: str = Field("", max_length=100_000)
    priority: int = Field(0, ge=-100, le=100)
    note: str = ""


class CheckOut(Schema):
    """One answer of the pre-flight panel."""

    level: str
    title: str
    detail: str
    path: str


class PreflightOut(Schema):
    """What the launch page says before launching."""

    may_launch: bool
    checks: list[CheckOut]
    queue_position: int
    seconds: float
    seconds_basis: str


class CheckpointFacts(Schema):
    """A saved checkpoint."""

    id: int
    step: int
    policy_version: int
    path: str
    size_bytes: int
    is_best: bool
    created_at: datetime
    deleted_at: datetime | None


class CheckpointOut(Schema):
    """A checkpoint and how it did."""

    checkpoint: CheckpointFacts
    evaluations: list[EvaluationOut]
    """By its experiment and on demand, oldest first."""
    evaluating: list[int]
    """Experiments that evaluate it and have no result yet."""


class EvaluateIn(Schema):
    """How a checkpoint shall be evaluated."""

    num_tasks: int = 72
    temperature: float = 1.0
    """0 = greedy."""


class ExportIn(Schema):
    """How a checkpoint shall be exported."""

    dtype: str = "bfloat16"
    """bfloat16, float16 or float32."""


class ExportOut(Schema):
    """An export and how far it is."""

    id: int
    checkpoint_id: int
    dtype: str
    status: str
    path: str
    host: str
    done_bytes: int
    total_bytes: int
    message: str


class Series(Schema):
    """One metric: parallel lists."""

    steps: list[int]
    values: list[float]


class TrajectoryRow(Schema):
    """A trajectory in a list."""

    id: int
    experiment_id: int | None
    group_id: int
    task_id: str = Field(alias="task.task_id")
    instruction: str = Field(alias="task.instruction")
    family: str
    purpose: str
    source: str
    status: str
    step: int
    policy_version: int | None
    num_turns: int
    num_parse_errors: int
    score: float | None
    reward: float | None
    advantage: float | None
    error: str
    parent_id: int | None = Field(None, alias="group.parent_id")
    """Of a branch: the trajectory that it was continued from."""
    branch_turn: int | None = Field(None, alias="group.branch_turn")
    """Turns before this one are the parent's, 0-based; null: no branch."""
    created_at: datetime
    ended_at: datetime | None


class BranchIn(Schema):
    """What to continue from a kept state."""

    turn: int = Field(ge=0)
    """The first turn that is taken anew, 0-based."""
    size: int = 4
    temperature: float = 1.0
    source: Source = Source.POLICY


class BranchOut(Schema):
    """The group that was queued."""

    group_id: int
    parent_id: int
    branch_turn: int
    trajectory_ids: list[int]


class KeepIn(Schema):
    """Whether to keep a snapshot before every turn from now on."""

    keep: bool


class SnapshotOut(Schema):
    """The state of a desktop before one turn."""

    trajectory_id: int
    """Whose it is: of a branch's earlier turns, the parent."""
    turn: int
    status: str
    host: str
    size_mb: float
    pause_s: float
    created_at: datetime


class TreeNode(Schema):
    """One trajectory of a tree; the root comes first, each branch below its parent."""

    trajectory_id: int
    parent_id: int | None
    branch_turn: int
    source: str
    status: str
    num_turns: int
    score: float | None
    reward: float | None


class TrajectoryDetail(Schema):
    """One trajectory with all its turns; frames are at /frames/SHA256.png (.jpg, .thumb.jpg)."""

    row: TrajectoryRow
    trajectory: WireTrajectory


class EntryRow(Schema):
    """A replay entry."""

    id: int
    trajectory_id: int
    family: str
    verdict: str
    tags: list[str]
    note: str
    labelled_by: str | None = Field(None, alias="labelled_by.username")
    labelled_at: datetime | None
    num_uses: int
    created_at: datetime


class LabelIn(Schema):
    """What to change; null leaves it as it is."""

    verdict: str | None = None
    tags: list[str] | None = None
    note: str | None = None
    expected_verdict: str | None = None
    """What the caller saw; another one by now is answered with 409."""


class ExperimentPage(Schema):
    """Newest first; `next` is the `after` of the next page."""

    items: list[ExperimentRow]
    next: str | None


class TrajectoryPage(Schema):
    """Newest first; `next` is the `after` of the next page."""

    items: list[TrajectoryRow]
    next: str | None


class EntryPage(Schema):
    """Newest first; `next` is the `after` of the next page."""

    items: list[EntryRow]
    next: str | None
