"""Pre-flight: are the model and the KL reference there, and can checkpoints be written?"""

import os
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from django.conf import settings

from training.contracts.config import ExperimentConfig
from training.planning.gpu_layouts import published_shape
from training.planning.image_settings import image_problem
from training.planning.model_families import (
    ModelFamily,
    UnsupportedModel,
    family_of_folder,
    unnamed_interval,
)
from training.planning.model_folders import TINY_RANDOM, NotInHubCache, cached_snapshot, hub_model
from training.planning.model_json import read_object, text_part
from training.planning.model_tokens import missing_tokens
from training.planning.model_weights import targets_without_layer, weight_problem
from training.planning.weight_files import StoredTensor, stored_tensors
from webapp.experiments.model_folders import TINY_SHAPE, model_folder, model_shape
from webapp.launch.preflight.check import Check
from webapp.launch.preflight.hosts import asked_hosts, missing_here
from webapp.launch.preflight.memory import memory_checks


def model_checks(config: ExperimentConfig) -> Iterator[Check]:
    if config.model.path == TINY_RANDOM:
        yield Check("good", "A random tiny model is made at the start", "From optimiser.seed.")
        yield from memory_checks(config, TINY_SHAPE)
        return
    folder = model_folder(config.model.path)
    if folder is None:
        text = _where_looked(config.model.path)
        yield Check(missing_here("gpu"), "Model not found", f"{text} {asked_hosts('gpu')}", "model.path")
        if (shape := published_shape(config.model.path)) is not None:
            yield from memory_checks(config, shape)
        return
    try:
        tensors = stored_tensors(folder)
        refusals = list(family_checks(config, folder, tensors))
        shape = None if refusals else model_shape(folder, tensors)
    except (ValueError, KeyError, TypeError, OSError) as error:
        yield Check("bad", "Model cannot be read", str(error), "model.path")
        return
    if shape is None:
        yield from refusals
        return
    yield Check("good", f"Model of {shape.num_parameters / 1e6:,.1f} M parameters", folder.name)
    yield from kernel_checks(config, family_of_folder(folder))
    yield from adapter_checks(config, folder.name, tensors)
    yield from memory_checks(config, shape)


def family_checks(
    config: ExperimentConfig, folder: Path, tensors: Mapping[str, StoredTensor]
) -> Iterator[Check]:
    """What speaks against the model's family; nothing where all is well. Raises ValueError and OSError."""
    try:
        family = family_of_folder(folder)
    except UnsupportedModel as error:
        yield Check("bad", "Model is not supported", f"{error}.", "model.path")
        return
    for what, wrong in (
        ("Weights do", weight_problem(folder, family, tensors)),
        ("Tokenizer does", missing_tokens(folder, family)),
        ("Image settings do", image_problem(folder) if family.has_vision else None),
    ):
        if wrong is not None:
            yield Check("bad", f"{what} not fit the model", f"{wrong}.", "model.path")
    if config.prompt.shows_screen and not family.has_vision:
        text = (
            f"{folder.name} reads text alone ({family.label}). Take screenshot out of prompt.observation and "
            "let it read accessibility or terminal, or choose a vision-language model."
        )
        yield Check("bad", "The model sees no screenshots", text, "prompt.observation")
    if config.engine.name == "sglang":
        yield from _sglang_checks(config, folder, family)


def _sglang_checks(config: ExperimentConfig, folder: Path, family: ModelFamily) -> Iterator[Check]:
    if not family.is_served:
        text = f"SGLang has no class for {family.label}. Set engine.name to transformers."
        yield Check("bad", "SGLang does not serve this model", text, "engine.name")
    elif config.lora.rank and family.adapted_too:
        text = (
            f"SGLang takes no adapters of those blocks of {family.label} that keep a state. "
            "Set lora.rank to 0, or engine.name to transformers."
        )
        yield Check("bad", "SGLang does not serve these adapters", text, "lora.rank")
    elif (interval := unnamed_interval(folder)) is not None:
        text = (
            f"{folder / 'config.json'}: SGLang reads full_attention_interval, which transformers leaves out. "
            f'Add "full_attention_interval": {interval} beside layer_types.'
        )
        yield Check("bad", "SGLang cannot read this config.json", text, "model.path")


def adapter_checks(config: ExperimentConfig, model: str, weights: Iterable[str]) -> Iterator[Check]:
    """Whether each name of `lora.targets` is a layer's."""
    unknown = targets_without_layer(weights, config.lora.targets) if config.lora.rank else []
    if not unknown:
        return
    is_all = len(unknown) == len(config.lora.targets)
    text = f"No layer of the text blocks of {model} is named {', '.join(unknown)}"
    text += ": choose names of its layers." if is_all else ", so that name gets no adapter."
    yield Check("bad" if is_all else "warning", "Adapters without a layer", text, "lora.targets")


def kernel_checks(config: ExperimentConfig, family: ModelFamily) -> Iterator[Check]:
    """Whether the trainer has the kernels that the family's blocks want on a GPU."""
    if not family.kernels or config.model.dtype != "bfloat16" or is_installed(family.kernels):
        return
    text = (
        f"Blocks of {family.label} that keep a state run in plain torch then, one sequence after the other: "
        "right, and slow on a GPU. Install the package in the environment of the gpu workers. "
    )
    title = f"{family.kernels} is not installed"
    yield Check("warning", title, text + asked_hosts("gpu"), "model.path")


def is_installed(package: str) -> bool:
    """In this process' environment, which is the gpu workers' on one host."""
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False


def _where_looked(path: str) -> str:
    """What is not there, and what to do."""
    if (model := hub_model(path)) is not None:
        try:
            cached_snapshot(model)
        except NotInHubCache as error:
            return f"{error}."
    return (
        f"No checkpoint folder with a config.json named {path!r}: not a shipped one, not a path, not below "
        f"{settings.DATA_DIR}. Put the downloaded folder there, write its path, or name a model of the hub "
        "as ORG/NAME@main or a checkpoint as experiment:NUMBER@best."
    )


def reference_checks(config: ExperimentConfig) -> Iterator[Check]:
    if config.algorithm.kl_coefficient <= 0:
        return
    path = "algorithm.reference_path"
    folder = model_folder(config.algorithm.reference_path)
    if folder is None:
        text = f"{_where_looked(config.algorithm.reference_path)} {asked_hosts('gpu')}"
        yield Check(missing_here("gpu"), "KL reference not found", text, path)
        return
    try:
        wrong = weight_problem(folder, family_of_folder(folder), stored_tensors(folder)) or _other_tokens(
            config, folder
        )
    except (ValueError, OSError) as error:
        wrong = str(error)
    if wrong:
        yield Check("bad", "KL reference cannot be used", f"{wrong}.", path)
    else:
        yield Check("good", "KL reference found")


def _other_tokens(config: ExperimentConfig, reference: Path) -> str | None:
    """Why the reference cannot score the policy's tokens, where both folders say how many they have."""
    policy = model_folder(config.model.path)
    if policy is None:
        return None
    rows = [text_part(read_object(one / "config.json")).get("vocab_size") for one in (policy, reference)]
    if None in rows or rows[0] == rows[1]:
        return None
    return (
        f"{reference.name} has {rows[1]} tokens (vocab_size in config.json), and the model has {rows[0]}: "
        "take the weights that the training begins with, or others of the same tokenizer"
    )


def checkpoint_folder_check(config: ExperimentConfig) -> Check:
    chosen = config.checkpoints.directory
    folder = Path(chosen).expanduser() if chosen else Path(settings.DATA_DIR) / "experiments"
    existing = next(path for path in (folder, *folder.absolute().parents) if os.path.exists(path))
    if not os.path.isdir(existing) or not os.access(existing, os.W_OK | os.X_OK):
        text = f"{existing} cannot be written by the user that the workers run as."
        return Check("bad", "Checkpoints cannot be saved", text, "checkpoints.directory")
    return Check("good", "Checkpoint folder is writable", str(folder) if chosen else "")
