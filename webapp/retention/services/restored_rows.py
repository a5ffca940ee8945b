"""What a restored installation does not have any more."""

from pathlib import Path

from django.utils import timezone

from webapp.experiments.models import FINAL_STATUSES, CheckpointRecord, Experiment, ExperimentStatus


def settle_restored_rows() -> list[str]:
    """Nothing starts by itself in a copy; checkpoints whose folders are elsewhere count as deleted."""
    Experiment.objects.exclude(status__in=FINAL_STATUSES).update(
        status=ExperimentStatus.PAUSED, message=RESTORED
    )
    kept = CheckpointRecord.objects.filter(deleted_at=None)
    missing = [(pk, path) for pk, path in kept.values_list("pk", "path") if not Path(path).is_dir()]
    CheckpointRecord.objects.filter(pk__in=[pk for pk, _ in missing]).update(deleted_at=timezone.now())
    return [path for _, path in missing]


RESTORED = "Restored from a backup. Resume goes on from the last checkpoint that is there."
