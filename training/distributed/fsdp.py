"""FSDP2: sharding a model, what stays gathered between microbatches, and clipping of sharded gradients.

Gradients of FSDP2 are averaged over ranks; losses here are shares of the batch loss, so the learner
multiplies by the world size before backward.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

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
    fill: Callable[[nn.Module], None] | None = None,
) -> None:
    """Shard `root` in place: each block that transformers calls indivisible, then all other weights.

    Weights and gradient reduction stay fp32; blocks compute in `compute_dtype`. `reshards`: blocks free their
    gathered weights between forward and backward. `offloads`: shards live in host memory between uses.
    `fill` gives a module its weights right before it is sharded.
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
        if fill is not None:
            fill(module)
        fully_shard(module, mp_policy=precision, reshard_after_forward=reshards, offload_policy=where)
    if fill is not None:
        fill(root)
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
