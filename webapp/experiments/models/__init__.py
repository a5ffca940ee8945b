"""Task sets, the queue of experiments, and what their attempts measured."""

from webapp.experiments.models.checkpoints import (
    CheckpointExport,
    CheckpointRecord,
    ExportStatus,
)
from webapp.experiments.models.experiments import (
    ACTIVE_STATUSES,
    EXPERIMENT_TRANSITIONS,
    FINAL_STATUSES,
    MAX_NAME,
    Attempt,
    AttemptStatus,
    Experiment,
    ExperimentStatus,
    GangMember,
    Stage,
    StageStatus,
)
from webapp.experiments.models.gpu_samples import GpuSample
from webapp.experiments.models.prices import MAX_CURRENCY, MAX_PRICE, PRICE_FIELDS, TeamPrices
from webapp.experiments.models.results import (
    ALARM_TRANSITIONS,
    AlarmRecord,
    AlarmStatus,
    Evaluation,
    EvaluationTasks,
    Incident,
    MetricPoint,
)
from webapp.experiments.models.reward_presets import SavedRewardPreset
from webapp.experiments.models.sweeps import (
    ARM_TRANSITIONS,
    SWEEP_TRANSITIONS,
    ArmStatus,
    Sweep,
    SweepArm,
    SweepStatus,
)
from webapp.experiments.models.tasks import TaskRecord, TaskSet, TaskStatus
