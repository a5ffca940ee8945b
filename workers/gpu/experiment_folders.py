"""Where this host keeps an experiment."""

from pathlib import Path

from django.conf import settings


def experiment_folder(experiment_id: int) -> Path:
    """Its config, logs and checkpoints."""
    return Path(settings.EXPERIMENTS_DIR) / str(experiment_id)


def output_folder(experiment_id: int) -> Path:
    """Its trainer's; the name tells experiments apart that share one checkpoints.directory."""
    return experiment_folder(experiment_id) / f"experiment-{experiment_id}"
