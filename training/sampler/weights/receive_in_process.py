"""An engine in the policy server's own process takes weights: straight into its model's tensors."""

import base64
from collections.abc import Iterable

import torch
import torch.distributed as dist

from training.contracts.weight_requests import Bucket, Check, Join
from training.model.families.registry import family_of
from training.sampler.engines.request_batching import BatchingEngine
from training.sampler.engines.transformers_engine import TransformersEngine
from training.sampler.weights.engine_tensor_names import check_shapes
from training.weights import sync_process_group
from training.weights.errors import WeightsRefused
from training.weights.ipc_channel import open_handle


class LocalReceiver:
    """Implements `training.sampler.weights.receiver.Receiver` for the engine `transformers`."""

    def __init__(self, batched: BatchingEngine, engine: TransformersEngine) -> None:
        self.batched = batched
        self.engine = engine
        self._group: dist.ProcessGroup | None = None
        self._store: dist.TCPStore | None = None

    async def check(self, request: Check) -> None:
        check_shapes(
            {name: tuple(shape) for name, shape in request.weights},
            {name: tuple(tensor.shape) for name, tensor in self._tensors().items()},
        )

    async def join(self, request: Join) -> None:
        await self.batched.call(self._join, request)

    async def take(self, request: Bucket) -> None:
        await self.batched.call(self._take, request)

    async def finish(self, policy_version: int) -> None:
        """Contexts carry the version that made them, so there is nothing to flush."""

    async def begin(self) -> None:
        """What was joined lives as long as this process."""

    def needs_weights(self) -> bool:
        return False

    async def leave(self) -> None:
        group, self._group, self._store = self._group, None, None
        if group is not None:
            sync_process_group.abort(group)

    def _join(self, request: Join) -> None:
        try:
            self._store = sync_process_group.find_store(request.address, request.port, request.world_size)
            self._group = sync_process_group.join(
                self._store,
                rank=1,
                world_size=request.world_size,
                name=request.group,
                backend=request.backend,
            )
        except (RuntimeError, ValueError) as error:
            raise WeightsRefused(f"cannot join the trainer's group: {error}") from error

    @torch.no_grad()
    def _take(self, request: Bucket) -> None:
        tensors = self._tensors()
        try:
            received = dict(self._receive(request))
            for name, tensor in received.items():
                tensors[name].copy_(tensor)
        except (RuntimeError, KeyError) as error:
            raise WeightsRefused(f"a bucket did not arrive: {error!r}") from error

    def _receive(self, request: Bucket) -> Iterable[tuple[str, torch.Tensor]]:
        if request.channel == "ipc":
            return open_handle(base64.b64decode(request.handles[0]))
        if self._group is None:
            raise WeightsRefused("stage: a bucket before the engine has joined")
        dtype = getattr(torch, request.dtype)
        tensors = [torch.empty(shape, dtype=dtype, device=self.engine.device) for shape in request.shapes]
        for work in sync_process_group.broadcast(tensors, self._group):
            work.wait()
        return zip(request.names, tensors, strict=True)

    def _tensors(self) -> dict[str, torch.Tensor]:
        """The model's own memory, laid out as a checkpoint is."""
        model = self.engine.model
        family = family_of(model)
        return {
            family.checkpoint_name(name): view.mT if family.is_stored_transposed(name, view.shape) else view
            for name, view in model.named_parameters()
        }
