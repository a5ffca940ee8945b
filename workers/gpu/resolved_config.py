"""An experiment's config as the trainer of this host reads it."""

from __future__ import annotations

from training.contracts.config import ExperimentConfig
from workers.gpu.fetched_checkpoints import bring_model


def with_folders(config: ExperimentConfig, model: str) -> ExperimentConfig:
    """The config with checkpoint names resolved to folders, as the trainer wants it."""
    reference = config.algorithm.reference_path
    resolved = bring_model(reference) if reference else ""
    return config.model_copy(
        update={
            "model": config.model.model_copy(update={"path": model}),
            "algorithm": config.algorithm.model_copy(update={"reference_path": resolved}),
        }
    )
