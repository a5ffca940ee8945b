"""Checkpoints that are still on disk: found, used as the start of another experiment, held while in use."""

from pathlib import Path

from django.db.models import Exists, OuterRef, Q

from training.contracts.config import ExperimentConfig
from training.contracts.stage_names import StageName
from webapp.experiments.models import (
    FINAL_STATUSES,
    CheckpointRecord,
    Experiment,
    Stage,
)
from webapp.lib.request_values import row_id

MODEL_FOLDER = "model"
"""Folder of a checkpoint that holds it in transformers format."""


class CheckpointRefused(ValueError):
    """Raised when a checkpoint cannot be used as asked; `field` names the input, "" the checkpoint itself."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


def find_checkpoint(experiment: Experiment, wanted: str) -> CheckpointRecord:
    """The checkpoint that "best", "latest", "step N" or its id means. Raises CheckpointRefused."""
    kept = experiment.checkpoints.filter(deleted_at=None).order_by("-id")
    if wanted in ("best", "latest"):
        found = kept.filter(is_best=True).first() if wanted == "best" else kept.first()
    elif (step := row_id(wanted.removeprefix("step "))) is not None and wanted.startswith("step "):
        found = kept.filter(step=step).first()
    else:
        found = experiment.checkpoints.filter(pk=row_id(wanted) or 0).first()
    if found is None:
        steps = ", ".join(str(row.step) for row in kept[:10]) or "none"
        raise CheckpointRefused(
            f"experiment #{experiment.pk} has no checkpoint {wanted!r}; kept are those of steps {steps}. "
            'Say best, latest, "step N" or an id'
        )
    return found


def require_kept(checkpoint: CheckpointRecord) -> None:
    """Raise CheckpointRefused when its folder was deleted."""
    if checkpoint.deleted_at is not None:
        raise CheckpointRefused(
            f"the checkpoint of step {checkpoint.step} was deleted at {checkpoint.deleted_at:%Y-%m-%d %H:%M} "
            "UTC (checkpoints.keep_last and the best one stay); choose one that is kept"
        )
    folder = Path(checkpoint.path)
    # Only where this machine sees the experiment's folder at all: gpu workers may have other disks.
    if folder.parent.is_dir() and not folder.is_dir():
        raise CheckpointRefused(f"{folder} is gone from the disk; choose another checkpoint")


def model_path(checkpoint: CheckpointRecord) -> str:
    """What another experiment names as its `model.path`."""
    return str(Path(checkpoint.path) / MODEL_FOLDER)


def config_to_continue(checkpoint: CheckpointRecord) -> ExperimentConfig:
    """The config of an experiment that goes on from a checkpoint with fresh optimiser and steps."""
    settings = checkpoint.experiment.settings
    changes = {
        "model": settings.model.model_copy(update={"path": model_path(checkpoint)}),
        "sft": settings.sft.model_copy(update={"enabled": False}),
        "evaluation": settings.evaluation.model_copy(update={"only": False}),
    }
    return settings.model_copy(update=changes)


def made_in_sft(checkpoint: str = "") -> Exists:
    """Whether a row's checkpoint is of the SFT stage, which counts its own steps, apart from GRPO's.

    `checkpoint` is the way from the row to it, e.g. "checkpoint__".
    """
    grpo = Stage.objects.filter(experiment=OuterRef(f"{checkpoint}experiment"), name=StageName.GRPO)
    return Exists(grpo.filter(Q(started_at=None) | Q(started_at__gt=OuterRef(f"{checkpoint}created_at"))))


def paths_in_use(experiment_id: int) -> list[str]:
    """Folders of this experiment's checkpoints that evaluations, exports or experiments still need."""
    kept = CheckpointRecord.objects.filter(experiment_id=experiment_id, deleted_at=None)
    waited_for = kept.filter(evaluated_by__in=Experiment.objects.exclude(status__in=FINAL_STATUSES))
    exported = kept.filter(exports__status__in=["queued", "running"])
    found = set(waited_for.values_list("path", flat=True)) | set(exported.values_list("path", flat=True))
    # An attempt that resumes reads them again: the engine starts from them, and adapters stand on them.
    unfinished = Experiment.objects.exclude(status__in=FINAL_STATUSES)
    started_from = set(unfinished.values_list("model_path", flat=True))
    found |= {row.path for row in kept if model_path(row) in started_from or row.path in started_from}
    return sorted(found)
