"""What a preset for GPUs needs of this installation, in one place: each thing, where it is, how to get it."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings

from training.contracts.config import ExperimentConfig
from training.contracts.number_text import counted
from training.planning.model_folders import TINY_RANDOM, hub_model
from webapp.experiments.model_folders import model_folder
from webapp.fleet.models import Worker, WorkerStatus
from webapp.fleet.queries.env_capacity import count_env_slots
from webapp.launch.preflight.check import Check


@dataclass(frozen=True, slots=True)
class Need:
    name: str
    text: str
    is_ready: bool
    path: str = ""
    """The setting that chooses it."""
    value: str | None = None
    """Of that setting, where it is chosen here."""
    command: str = ""
    """What makes it ready."""


def needs_of(config: ExperimentConfig, checks: Sequence[Check]) -> tuple[Need, ...]:
    """Nothing for what runs on processors alone; `checks` are those of pre-flight."""
    if config.engine.name != "sglang" and config.model.dtype != "bfloat16":
        return ()
    return _model(config.model.path), _gpus(config), _engine(config), _desktops(config, checks)


def _model(path: str) -> Need:
    folder, named = model_folder(path), hub_model(path)
    if path == TINY_RANDOM or folder is not None:
        where = str(folder) if folder else "made at the start"
        return Need("Model", where, True, "model.path", path)
    if named is not None:
        command = f"hf download {named.repository} --revision {named.revision}"
        return Need("Model", "Not in the hub's cache of this machine", False, "model.path", path, command)
    text = "Not found: a folder's path, or ORG/NAME@main for a model of the hub"
    return Need("Model", text, False, "model.path", path)


def _gpus(config: ExperimentConfig) -> Need:
    online = Worker.objects.filter(queue="gpu", status=WorkerStatus.ONLINE)
    there = sum(len(gpus or ()) for gpus in online.values_list("gpus", flat=True))
    text = f"{counted(config.num_gpus, 'GPU')} needed, {there} online"
    return Need("GPUs", text, there >= config.num_gpus, "optimiser.num_processes")


def _engine(config: ExperimentConfig) -> Need:
    if config.engine.name != "sglang":
        return Need("Engine", f"{config.engine.name}, with the trainer", True, "engine.name")
    is_there = shutil.which(settings.SGLANG_PYTHON) is not None
    text = f"SGLang in {settings.SGLANG_PYTHON}" if is_there else "SGLang is not installed on this machine"
    return Need("Engine", text, is_there, "engine.name", command="" if is_there else "make sglang-env")


def _desktops(config: ExperimentConfig, checks: Sequence[Check]) -> Need:
    wrong = [check for check in checks if check.path.startswith("desktops.") and check.level == "bad"]
    there, wanted = count_env_slots(), config.desktops.num_desktops
    title = config.desktops.provider_info.title
    text = wrong[0].title if wrong else f"{wanted} of {title} wanted, {there} slots online"
    command = "" if there else "make up"
    return Need("Desktops", text, not wrong and there >= wanted, "desktops.num_desktops", command=command)
