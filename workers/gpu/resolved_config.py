"""An experiment's config as the trainer of this host reads it."""

from training.contracts.config import ConfigError, ExperimentConfig
from training.planning.model_folders import pinned
from webapp.worker_door.attempts import HeldAttempt, record_pinned, runnable_config, with_models
from workers.gpu.fetched_checkpoints import bring_model
from workers.reports.current import reports


def allowed_config(attempt: HeldAttempt) -> ExperimentConfig:
    """What it may begin with now, with the commits of the hub that this host knows. Raises ConfigError."""
    found = reports().request(runnable_config, attempt.pk)
    if found.config is None:
        raise ConfigError(found.problems)
    config = found.config
    model, reference = pinned(config.model.path), pinned(config.algorithm.reference_path)
    if (model, reference) == (config.model.path, config.algorithm.reference_path):
        return config
    reports().request(record_pinned, attempt.pk, model, reference)
    return with_models(config, model, reference)


def with_folders(config: ExperimentConfig, model: str) -> ExperimentConfig:
    """The config with checkpoint names resolved to folders, as the trainer wants it."""
    reference = config.algorithm.reference_path
    resolved = bring_model(reference) if reference else ""
    return with_models(config, model, resolved)
