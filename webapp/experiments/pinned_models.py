"""The weights that an experiment names, as they are when it is queued, whatever moves on meanwhile.

experiment:12@best       a checkpoint of an experiment of the team: best, latest, "step N" or its id
ORG/NAME@main            a model of the hub: the commit of a branch or tag, where this machine knows it
"""

import re
from collections.abc import Iterator

from training.contracts.config import ExperimentConfig
from training.contracts.config.section import Problem
from training.planning.model_families import image_factor
from training.planning.model_folders import pinned
from webapp.accounts.models import Team
from webapp.experiments.model_folders import model_folder
from webapp.experiments.models import Experiment
from webapp.experiments.queries.checkpoints import (
    CheckpointRefused,
    find_checkpoint,
    model_path,
    require_kept,
)
from webapp.lib.request_values import row_id

OF_EXPERIMENT = re.compile(r"experiment:(?P<number>\d+)@(?P<wanted>.+)")


def with_pinned_models(config: ExperimentConfig, team: Team) -> ExperimentConfig:
    """`config` with a folder for a checkpoint's name, and with commits for the hub's branches and tags.

    What cannot be found stays as it is written; `model_problems` and the gpu worker say so.
    """
    reference = _pinned(config.algorithm.reference_path, team)
    return with_models(config, _pinned(config.model.path, team), reference)


def with_models(config: ExperimentConfig, path: str, reference: str) -> ExperimentConfig:
    """`config` with these for its model and its reference, and with the grid of the model's own pictures."""
    folder = model_folder(path)
    factor = (image_factor(folder) if folder else None) or config.model.image_factor
    model = config.model.model_copy(update={"path": path, "image_factor": factor})
    algorithm = config.algorithm.model_copy(update={"reference_path": reference})
    return config.model_copy(update={"model": model, "algorithm": algorithm})


def model_problems(config: ExperimentConfig, team: Team) -> Iterator[Problem]:
    """(field, what to do) of names of checkpoints that lead nowhere."""
    for field, path in (
        ("model.path", config.model.path),
        ("algorithm.reference_path", config.algorithm.reference_path),
    ):
        try:
            _of_experiment(path, team)
        except CheckpointRefused as refused:
            yield field, str(refused)


def _pinned(path: str, team: Team) -> str:
    try:
        return _of_experiment(path, team) or pinned(path)
    except CheckpointRefused:
        return path


def _of_experiment(path: str, team: Team) -> str:
    """The folder of the checkpoint that `path` names; "" when it names none. Raises CheckpointRefused."""
    match = OF_EXPERIMENT.fullmatch(path.strip())
    if match is None:
        return ""
    experiment = Experiment.objects.filter(team=team, pk=row_id(match["number"]) or 0).first()
    if experiment is None:
        raise CheckpointRefused(f"{team} has no experiment {match['number']}")
    checkpoint = find_checkpoint(experiment, match["wanted"].strip())
    require_kept(checkpoint)
    return model_path(checkpoint)
