"""What the API says of checkpoints, evaluations on demand and exports, and takes."""

from datetime import datetime

from ninja import Schema

from webapp.api.experiment_schemas import EvaluationOut


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
    samples_per_task: int = 1
    """Of the sampled pass; the greedy one has one."""
    temperature: float | None = None
    """Of the sampled pass; null = of the training, 0 = no sampled pass."""
    greedy: bool = True
    """Whether to evaluate greedily too."""


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
