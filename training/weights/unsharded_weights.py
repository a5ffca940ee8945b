"""The trainer's weights one by one, whole and under the names of a plain transformers checkpoint.

    shard -> cast -> gather -> (merge its adapter) -> one tensor, the same on every rank

Nothing here ever holds more than the weights that the caller keeps: a bucket of them for the channels
over the network, one for the file of the disk channel.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from training.distributed.fsdp import full
from training.model.families.registry import family_of
from training.model.lora import BASE, adapter_scales, is_adapter, merge


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """What LoRA adds to a weight: scale * up @ down."""

    down: nn.Parameter
    up: nn.Parameter
    scale: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """One tensor of the checkpoint that the model would be saved as."""

    name: str
    """As transformers writes it: model.language_model.layers.0.self_attn.q_proj.weight"""
    parameter: nn.Parameter
    """Perhaps a shard; `shape` is the whole tensor's, as a checkpoint has it."""
    adapter: Adapter | None = None
    is_transposed: bool = False
    """A checkpoint has its last two dimensions the other way round."""

    @property
    def shape(self) -> tuple[int, ...]:
        shape = tuple(self.parameter.shape)
        return (*shape[:-2], shape[-1], shape[-2]) if self.is_transposed else shape

    @property
    def numel(self) -> int:
        return self.parameter.numel()

    @torch.no_grad()
    def gather(self, dtype: torch.dtype) -> torch.Tensor:
        """The whole tensor in `dtype` on the weight's device; may share memory with it. A collective."""
        if self.adapter is None:
            # Cast before gathering: half of the traffic for bfloat16.
            whole = full(self.parameter.detach().to(dtype))
            return (whole.mT if self.is_transposed else whole).contiguous()
        base, down, up = (
            full(part.detach()) for part in (self.parameter, self.adapter.down, self.adapter.up)
        )
        return merge(base, down, up, self.adapter.scale).to(dtype)


def plain_weights(model: nn.Module) -> list[Weight]:
    """Every weight of `model` with its adapter, tied ones once, in the order of the model."""
    parameters, scales, family = dict(model.named_parameters()), adapter_scales(model), family_of(model)
    weights = []
    for name, parameter in parameters.items():
        if is_adapter(name):
            continue
        layer, separator, part = name.partition(BASE)
        adapter = None
        if part == "weight" and layer in scales:
            down, up = (parameters[f"{layer}.lora_{side}.default.weight"] for side in "AB")
            adapter = Adapter(down=down, up=up, scale=scales[layer])
        plain = f"{layer}.{part}" if separator else name
        weights.append(
            Weight(
                name=family.checkpoint_name(plain),
                parameter=parameter,
                adapter=adapter,
                is_transposed=family.is_stored_transposed(plain, tuple(parameter.shape)),
            )
        )
    return weights


def in_buckets(weights: Sequence[Weight], dtype: torch.dtype, limit_bytes: int) -> Iterator[list[Weight]]:
    """Neighbours whose tensors have at most `limit_bytes` together; a larger one is a bucket of its own."""
    bucket: list[Weight] = []
    used = 0
    for weight in weights:
        size = weight.numel * dtype.itemsize
        if bucket and used + size > limit_bytes:
            yield bucket
            bucket, used = [], 0
        bucket.append(weight)
        used += size
    if bucket:
        yield bucket


def num_bytes(weights: Sequence[Weight], dtype: torch.dtype) -> int:
    """Size of a checkpoint of `weights`."""
    return sum(weight.numel for weight in weights) * dtype.itemsize
