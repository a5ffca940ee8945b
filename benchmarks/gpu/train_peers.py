"""The same samples as tensors of the peers: a plain transformers call, and TRL's GRPOTrainer."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
import tempfile
import types
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from training.batch.collate import Pixels
from training.batch.samples import Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """One trajectory."""

    model: dict[str, torch.Tensor]
    """Keyword arguments of the model's forward. [1, T] and pixel rows"""
    mask: torch.Tensor
    """1.0 on completion tokens. [T]"""
    behaviour: torch.Tensor
    """[T]"""


def inputs_of(sample: Sample, pixels: Pixels, image_pad_id: int, device: torch.device) -> Inputs:
    """Everything of one trajectory on `device`."""
    tokens = torch.tensor(sample.token_ids)[None]
    model = {
        "input_ids": tokens,
        "attention_mask": torch.ones_like(tokens),
        "mm_token_type_ids": (tokens == image_pad_id).int(),
        "pixel_values": torch.from_numpy(np.concatenate([pixels(name) for name in sample.images])),
        "image_grid_thw": torch.tensor(sample.grids),
    }
    return Inputs(
        model={name: value.to(device) for name, value in model.items()},
        mask=torch.tensor(sample.loss_mask, dtype=torch.float32, device=device),
        behaviour=torch.tensor(sample.behaviour_logprobs, device=device),
    )


def trl_inputs(sample: Sample, pixels: Pixels, image_pad_id: int, device: torch.device) -> dict[str, Any]:
    """As TRL's rollouts of several turns: after the first prompt all is completion, ours by `tool_mask`."""
    inputs = inputs_of(sample, pixels, image_pad_id, device)
    tokens, start = inputs.model["input_ids"], sample.loss_mask.index(1)
    mask, behaviour = inputs.mask[None, start:], inputs.behaviour[None, start:]
    return {
        "prompt_ids": tokens[:, :start],
        "prompt_mask": torch.ones_like(tokens[:, :start]),
        "completion_ids": tokens[:, start:],
        "completion_mask": torch.ones_like(tokens[:, start:]),
        "tool_mask": mask.long(),
        "advantages": torch.tensor([sample.advantage], device=device),
        "old_per_token_logps": behaviour,
        "num_items_in_batch": mask.sum(),
        "pixel_values": inputs.model["pixel_values"],
        "image_grid_thw": inputs.model["image_grid_thw"],
        "num_images": [len(sample.images)],
        "mm_token_type_ids": inputs.model["mm_token_type_ids"],
    }


def trl_trainer(model: torch.nn.Module, tokenizer: Any, count: int, more: dict[str, Any]) -> Any:
    """A GRPOTrainer with TRL's defaults, but for `more`; its loop does not run, we call its loss."""
    _stand_in_for_data_packages()
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    rows = [{"prompt": "a"}] * count
    tokenizer.padding_side = "left"
    options = GRPOConfig(
        output_dir=tempfile.mkdtemp(prefix="trl-"),
        report_to=[],
        per_device_train_batch_size=count,
        num_generations=count,
        gradient_accumulation_steps=1,
        steps_per_generation=1,
        max_steps=1,
        use_cpu=not torch.cuda.is_available(),
        bf16=torch.cuda.is_available(),
        **more,
    )
    trainer = GRPOTrainer(
        model=model,
        args=options,
        reward_funcs=lambda completions, **_: [0.0] * len(completions),
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer,
    )
    trainer.current_gradient_accumulation_steps = 1  # set by the training loop, which does not run here
    if trainer.args.gradient_checkpointing:  # on by default; the training loop would do it
        trainer.model.gradient_checkpointing_enable()
    trainer.model.train()
    return trainer


def _stand_in_for_data_packages() -> None:
    """Let TRL be imported where `datasets` and `pandas` are missing: nothing that is timed uses them."""
    for name in ("datasets", "pandas"):
        if importlib.util.find_spec(name) is None:
            sys.modules[name] = _StandIn(name)


class _StandIn(types.ModuleType):
    """A module in which every name is an empty class."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__spec__ = importlib.machinery.ModuleSpec(name, None)
        self.__version__ = "0"
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (), {"from_list": classmethod(lambda cls, rows: cls()), "cache_files": ()})
        setattr(self, name, made)
        return made
