"""A checkpoint folder becomes a sharded model block by block.

    model without weights -> adapters, compiled and recomputed blocks -> per block: read its weights, shard it

So no process ever holds more than its shards and one whole block. 32B in fp32 is 133 GB, too much for a GPU.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import cast

import torch
from accelerate import init_empty_weights
from safetensors import safe_open
from torch import nn
from transformers import AutoConfig, PretrainedConfig, PreTrainedModel

from training.model.families.registry import family_at, family_of
from training.planning.model_json import is_tied, read_object
from training.planning.weight_files import weight_files

HEAD = "lm_head.weight"
FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
EXPERTS = re.compile(r"\.experts\.(gate_up|down)_proj$")
WeightReader = Callable[[str, tuple[int, ...]], torch.Tensor]
"""(name as in a checkpoint, shape) -> the whole tensor, on any device and in any floating-point type."""


def has_safetensors(folder: str | Path) -> bool:
    """False for a folder that only transformers itself can read, e.g. of pytorch_model.bin."""
    return bool(weight_files(folder))


def empty_model(config: str | Path | PretrainedConfig) -> PreTrainedModel:
    """The fp32 model of a config, or of a folder's, in training mode: weights on meta, buffers real."""
    if not isinstance(config, PretrainedConfig):
        config = AutoConfig.from_pretrained(config, trust_remote_code=False)
    with init_empty_weights(include_buffers=False):
        model = family_of(config).auto_class.from_config(config, dtype=torch.float32)
    model.tie_weights()  # every assignment inside made a parameter of its own
    return cast(PreTrainedModel, model.train())


class Filler:
    """Gives the modules of an `empty_model` their weights; make it before anything renames parameters."""

    def __init__(self, model: nn.Module, read: WeightReader, device: torch.device) -> None:
        self._names = {parameter: name for name, parameter in model.named_parameters()}
        self._read = read
        self._device = device

    def __call__(self, module: nn.Module) -> None:
        """All weights below `module` that have none yet. Raises ValueError as the reader does."""
        made: dict[nn.Parameter, nn.Parameter] = {}  # tied ones stay one
        for part in module.modules():
            for key, parameter in part._parameters.items():
                if parameter is None or parameter not in self._names:
                    continue
                if parameter not in made:
                    value = self._read(self._names[parameter], tuple(parameter.shape))
                    value = value.to(self._device, torch.float32)
                    made[parameter] = nn.Parameter(value, requires_grad=parameter.requires_grad)
                part._parameters[key] = made[parameter]


class FolderReader:
    """Reads single weights of the safetensors that transformers would read; a WeightReader."""

    def __init__(self, folder: str | Path) -> None:
        """Raises ValueError where two weights differ that the config calls one."""
        self._folder = Path(folder)
        self._family = family_at(folder)
        files = [safe_open(path, "pt") for path in weight_files(folder)]
        self._files = {name: file for file in files for name in file.keys()}  # noqa: SIM118 - not a dict
        self._require_one_head()

    def _require_one_head(self) -> None:
        """Tied ones that differ: transformers would keep both, so the engine would be another model."""
        described = read_object(self._folder / "config.json")
        embedding = next((name for name in self._files if name.endswith("embed_tokens.weight")), None)
        if not is_tied(described) or HEAD not in self._files or embedding is None:
            return
        both = (self._files[name].get_tensor(name) for name in (HEAD, embedding))
        if not torch.equal(*both):
            raise ValueError(
                f"model.path: {self._folder}: {HEAD} is another than {embedding}, and config.json has "
                "tie_word_embeddings true: set it to false"
            )

    def __call__(self, name: str, shape: tuple[int, ...]) -> torch.Tensor:
        """Raises ValueError for a weight that is missing, has another shape or is quantised."""
        tensor = self._read(name, shape)
        # As transformers does: what already has the model's shape stays as it is.
        if self._family.is_stored_transposed(name, shape) and tuple(tensor.shape) != shape:
            tensor = tensor.mT.contiguous()
        if tuple(tensor.shape) != shape:
            raise ValueError(
                f"model.path: {self._folder}: {name} is {tuple(tensor.shape)}, config.json wants {shape}"
            )
        if tensor.dtype not in FLOATS:
            raise ValueError(
                f"model.path: {self._folder}: {name} is {tensor.dtype}, and quantised weights cannot be "
                "trained; choose the model's folder in bfloat16"
            )
        return tensor

    def _read(self, name: str, shape: tuple[int, ...]) -> torch.Tensor:
        stored = name if name in self._files else self._family.checkpoint_name(name)
        if stored in self._files:
            return cast(torch.Tensor, self._files[stored].get_tensor(stored))
        if f"{EXPERTS.sub('.experts.0.', stored)}down_proj.weight" in self._files:
            return self._of_experts(stored, shape[0])
        raise ValueError(f"model.path: {self._folder} has no weight {name}; is it a whole checkpoint?")

    def _of_experts(self, stored: str, count: int) -> torch.Tensor:
        """All experts' matrices as one tensor, of a folder that transformers saved. [experts, out, in]"""
        parts = ("gate_proj", "up_proj") if stored.endswith("gate_up_proj") else ("down_proj",)
        matrices = []
        for expert in range(count):
            names = [f"{EXPERTS.sub(f'.experts.{expert}.', stored)}{part}.weight" for part in parts]
            if lacking := [name for name in names if name not in self._files]:
                raise ValueError(f"model.path: {self._folder} has no weight {lacking[0]}")
            matrices.append(torch.cat([self._files[name].get_tensor(name) for name in names]))
        return torch.stack(matrices)
