"""The config that an experiment has stored."""

from training.contracts.config import ExperimentConfig
from webapp.experiments.models import Experiment
from webapp.experiments.pinned_models import with_pinned_models


def pin_models(experiment: Experiment, config: ExperimentConfig) -> ExperimentConfig:
    """Record the commits that this machine knows in the experiment's stored config; the config with them."""
    found = with_pinned_models(config, experiment.team)
    if found != config:
        record_config(experiment, found)
    return found


def record_config(experiment: Experiment, config: ExperimentConfig) -> None:
    """Store `config` as the experiment's."""
    Experiment.objects.filter(pk=experiment.pk).update(config=config.model_dump(mode="json"))
