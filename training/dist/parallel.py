"""FSDP2: process group, sharding and the few collectives of the trainer.

One code path for 1 and N processes: without `training.dist.launch` a process group of one is
made in memory. Gradients of FSDP2 are averaged over ranks; losses here are shares of the
batch loss, so the trainer multiplies by the world size before backward.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import (
    CPUOffloadPolicy,
    FSDPModule,
    MixedPrecisionPolicy,
    OffloadPolicy,
    fully_shard,
)
from torch.distributed.tensor import DTensor

from training.dist.launch import STORE_VARIABLE

T = TypeVar("T")

COLLECTIVE_TIMEOUT = timedelta(hours=6)
"""Ranks other than 0 wait in a broadcast while desktops work; an evaluation may take long."""


@dataclass(frozen=True, slots=True)
class World:
    """This process among its peers."""

    rank: int
    size: int
    device: torch.device

    @property
    def is_main(self) -> bool:
        """Rank 0: the only one that talks to the coordinator."""
        return self.rank == 0


def start_world() -> World:
    """Join (or make) the process group: nccl on CUDA, gloo on the CPU."""
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    if torch.cuda.is_available():
        device = torch.device("cuda", local_rank)
        torch.cuda.set_device(device)
    else:
        device = torch.device("cpu")
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    path = os.environ.get(STORE_VARIABLE)
    if size > 1 and not path:
        raise ValueError(f"{STORE_VARIABLE} is not set: start ranks by `python -m training.dist.launch`")
    store = dist.FileStore(path, size) if path else dist.HashStore()
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=COLLECTIVE_TIMEOUT)
    return World(dist.get_rank(), dist.get_world_size(), device)


def stop_world() -> None:
    """Leave the process group."""
    if dist.is_initialized():
        dist.destroy_process_group()


class ReduceAlone:
    """FSDP2's reduce-scatter (`torch.distributed.fsdp`) of one process: what comes out is what went in.

    FSDP2 would copy it into memory of a stream of its own. Memory of one stream is closed to others, so a
    full GPU gave gradients' room back to the driver and asked for it anew, twice in every step.
    """

    def __init__(self) -> None:
        self._went_in: torch.Tensor | None = None

    def allocate(self, size: Sequence[int], *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        """Room for the gradients that go in; asked again, the same for what comes out."""
        if self._went_in is None:
            self._went_in = torch.empty(*size, dtype=dtype, device=device)
            return self._went_in
        found, self._went_in = self._went_in, None
        assert found.shape == tuple(size)
        assert found.dtype == dtype
        return found

    def __call__(self, **options: object) -> None:
        raise AssertionError("one process has nothing to send")


def shard(
    root: nn.Module,
    model: nn.Module,
    *,
    compute_dtype: torch.dtype,
    reshards: bool = True,
    offloads: bool = False,
) -> None:
    """Shard `root` in place: each block that transformers calls indivisible, then the rest.

    Weights and gradient reduction stay fp32; blocks compute in `compute_dtype`. `reshards`: blocks free their
    gathered weights between forward and backward. `offloads`: shards live in host memory between uses.
    """
    names = set(getattr(model, "_no_split_modules", None) or ())
    # Inputs stay as they are: the angles of rotary positions are fp32 and must not be rounded on the way in.
    precision = MixedPrecisionPolicy(
        param_dtype=compute_dtype, reduce_dtype=torch.float32, cast_forward_inputs=False
    )
    if compute_dtype == torch.float32:
        precision = MixedPrecisionPolicy()
    where = CPUOffloadPolicy(pin_memory=torch.cuda.is_available()) if offloads else OffloadPolicy()
    for module in [module for module in model.modules() if type(module).__name__ in names]:
        fully_shard(module, mp_policy=precision, reshard_after_forward=reshards, offload_policy=where)
    fully_shard(root, mp_policy=precision, offload_policy=where)
    if dist.get_world_size() == 1 and not offloads:
        for module in root.modules():
            if isinstance(module, FSDPModule):
                module.set_custom_reduce_scatter(cast(Any, ReduceAlone()))


def reshard(root: nn.Module) -> None:
    """Free the gathered weights after a forward without backward.

    The root keeps its gathered weights for the backward; without one, its parameters would stay the
    gathered copies, and a checkpoint or an optimiser would see the wrong tensors.
    """
    for module in root.modules():
        if isinstance(module, FSDPModule):
            module.reshard()


def between_microbatches(
    root: nn.Module, *, is_last: bool, keeps_weights: bool, keeps_gradients: bool
) -> None:
    """Say, before a forward, what its backward leaves whole for the next microbatch of the step.

    `keeps_weights`: gathered weights; then a step gathers once. `keeps_gradients`: fp32 gradients; then a
    step reduces once. The last backward of a step leaves shards only.
    """
    assert isinstance(root, FSDPModule)
    root.set_reshard_after_backward(is_last or not keeps_weights)
    root.set_requires_gradient_sync(is_last or not keeps_gradients)


def clip_gradients(parameters: Iterable[nn.Parameter], max_norm: float) -> float:
    """Scale the gradients so that their norm is at most `max_norm`; the norm before. A collective.

    Like `torch.nn.utils.clip_grad_norm_`, but on the shards as plain tensors: hundreds of small operations on
    DTensors take longer to dispatch than the whole update takes.
    """
    shards = [_shard(parameter.grad) for parameter in parameters if parameter.grad is not None]
    square = torch.nn.utils.get_total_norm(shards).square()
    dist.all_reduce(square)
    norm = square.sqrt()
    torch._foreach_mul_(shards, (max_norm / (norm + 1e-6)).clamp(max=1.0))
    return float(norm)


def _shard(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def full(tensor: torch.Tensor) -> torch.Tensor:
    """The whole tensor of a shard (a collective for shards)."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def full_state(model: nn.Module) -> dict[str, torch.Tensor]:
    """All weights gathered, on the CPU; may share memory with the model. A collective; tied weights once."""
    state: dict[str, torch.Tensor] = {}
    for name, parameter in model.named_parameters():
        state[name] = full(parameter.detach()).cpu().contiguous()
    return state


def sum_over_ranks(values: Iterable[float]) -> list[float]:
    """Element-wise sum of a list of numbers over all ranks, in fp64."""
    tensor = torch.tensor(list(values), dtype=torch.float64)
    dist.all_reduce(tensor)
    return tensor.tolist()


def is_finite_everywhere(value: float) -> bool:
    """False on every rank as soon as `value` is inf or NaN on one."""
    bad = torch.tensor([0.0 if torch.isfinite(torch.tensor(value)) else 1.0])
    dist.all_reduce(bad)
    return bool(bad.item() == 0.0)


def from_main(value: T | None) -> T:
    """Rank 0's `value` on every rank (pickled: our own processes only)."""
    box = [value]
    dist.broadcast_object_list(box, src=0)
    return box[0]  # type: ignore[return-value]


def barrier() -> None:
    """Wait for every rank."""
    dist.barrier()
