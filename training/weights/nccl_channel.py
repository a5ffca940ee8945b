"""The channel `nccl`: rank 0 broadcasts to the engine's GPUs, over NVLink on one host. gloo without a GPU.

The engine must already be waiting for a bucket when rank 0 broadcasts it, so the call that announces it is
made in a thread and stays open until the engine has loaded it.
"""

import contextlib
import os
from collections.abc import Iterator
from uuid import uuid4

import torch
import torch.distributed as dist

from training.contracts.weight_requests import Join, StreamName
from training.weights import sync_process_group
from training.weights.bucket_streaming import BUCKET_BYTES, StreamingChannel
from training.weights.channel import Sender
from training.weights.errors import SyncFailed
from training.weights.unsharded_weights import Weight


class NcclChannel(StreamingChannel):
    """A group of rank 0 and the engine's ranks."""

    name: StreamName = "nccl"

    def __init__(self, sender: Sender, *, bucket_bytes: int = BUCKET_BYTES) -> None:
        super().__init__(sender, bucket_bytes=bucket_bytes)
        self.backend = "nccl" if sender.world.device.type == "cuda" else "gloo"
        self._group: dist.ProcessGroup | None = None
        self._store: dist.TCPStore | None = None
        self._works: list[dist.Work] = []
        self._on_the_way: list[torch.Tensor] = []
        """What `_works` read; must live until they are done."""

    def _open_stream(self) -> None:
        self._agree(self._join)

    def _join(self) -> None:
        size = 1 + self.sender.num_engine_ranks
        self._store = sync_process_group.open_store(size)
        name = f"deskhand-{os.getpid()}-{uuid4().hex[:8]}"
        self._start_call(
            Join(
                channel="nccl",
                address=sync_process_group.HOST,
                port=self._store.port,
                group=name,
                world_size=size,
                backend=self.backend,
            )
        )
        with _as_sync_failed("join"):
            self._group = sync_process_group.join(
                self._store, rank=0, world_size=size, name=name, backend=self.backend
            )
        self._finish_bucket()

    def _send(self, bucket: list[Weight], tensors: list[torch.Tensor]) -> None:
        def send() -> None:
            self._finish_bucket()
            self._start_call(self._bucket_request(bucket))
            self._broadcast(tensors)

        self._agree(send)

    def _broadcast(self, tensors: list[torch.Tensor]) -> None:
        assert self._group is not None, "open before sending"
        self._on_the_way = [tensor.to(self.sender.world.device) for tensor in tensors]
        with _as_sync_failed("broadcast"):  # e.g. two of the group on one GPU
            self._works = sync_process_group.broadcast(self._on_the_way, self._group)

    def _finish_bucket(self) -> None:
        # The answer first: a broadcast without a receiver would never end.
        super()._finish_bucket()
        with _as_sync_failed("broadcast"):
            for work in self._works:
                work.wait()
        self._works, self._on_the_way = [], []

    def _give_up(self) -> None:
        if self._group is not None:
            sync_process_group.abort(self._group)
        self._group = self._store = None
        self._works, self._on_the_way = [], []


@contextlib.contextmanager
def _as_sync_failed(what: str) -> Iterator[None]:
    """Errors of the process group are reasons to go by disk."""
    try:
        yield
    except (RuntimeError, ValueError) as error:
        raise SyncFailed(f"nccl, {what}: {error}") from error
