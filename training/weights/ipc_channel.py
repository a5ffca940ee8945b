"""The channel `ipc`: trainer and engine share a GPU; only handles travel, the engine copies from our memory.

Every rank lays its bucket out in one flat buffer and sends the buffer's handle; the engine process on the
same GPU opens it. Two buffers take turns: one is read by the engine while the other one is filled. Without a
GPU the buffers are in named shared memory.
"""

import base64
import io
import pickle
from multiprocessing.reduction import ForkingPickler
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist
from torch.multiprocessing import reductions

from training.contracts.weight_requests import Canary, StreamName
from training.weights.bucket_streaming import StreamingChannel
from training.weights.unsharded_weights import Weight, in_buckets, plain_weights

DEVICE = 6
"""Place of the device's number in the arguments of torch's `rebuild_cuda_tensor`."""


class IpcChannel(StreamingChannel):
    """Buffers live from the first bucket of a version to its last."""

    name: StreamName = "ipc"

    def _open_stream(self) -> None:
        self._buffers: list[torch.Tensor] = []
        self._turn = 0

    def push(self, policy_version: int) -> Canary | None:
        """See Channel."""
        try:
            return super().push(policy_version)
        finally:
            self._give_up()

    def _send(self, bucket: list[Weight], tensors: list[torch.Tensor]) -> None:
        buffer = self._next_buffer()
        flat, entries = fill_buffer(bucket, tensors, buffer)
        if flat.device.type == "cuda":
            torch.cuda.synchronize(flat.device)  # another process reads it: streams mean nothing to it
        handle = base64.b64encode(pack_handle(flat, entries)).decode()
        handles: list[Any] = [None] * self.sender.world.size
        dist.all_gather_object(handles, handle)

        def send() -> None:
            self._finish_bucket()
            self._start_call(self._bucket_request(bucket, handles))

        self._agree(send)

    def _next_buffer(self) -> torch.Tensor:
        """The buffer that the engine is not reading: the bucket before the last has arrived."""
        if not self._buffers:
            sizes = [
                sum(weight.numel for weight in bucket) * self.sender.dtype.itemsize
                for bucket in in_buckets(
                    plain_weights(self.sender.model), self.sender.dtype, self.bucket_bytes
                )
            ]
            device = self.sender.world.device
            self._buffers = [torch.empty(max(sizes), dtype=torch.uint8, device=device) for _ in range(2)]
        self._turn = 1 - self._turn
        return self._buffers[self._turn]

    def _give_up(self) -> None:
        self._buffers = []
        if self.sender.world.device.type == "cuda":
            torch.cuda.ipc_collect()


def fill_buffer(
    bucket: list[Weight], tensors: list[torch.Tensor], buffer: torch.Tensor
) -> tuple[torch.Tensor, list[SimpleNamespace]]:
    """`tensors` one after the other in `buffer`, and where each of them is, in SGLang's words."""
    entries, start = [], 0
    for weight, tensor in zip(bucket, tensors, strict=True):
        flat = tensor.reshape(-1).view(torch.uint8)
        end = start + len(flat)
        buffer[start:end].copy_(flat)
        entries.append(
            SimpleNamespace(
                name=weight.name,
                shape=tensor.shape,
                dtype=tensor.dtype,
                start_idx=start,
                end_idx=end,
                numel=len(flat),
            )
        )
        start = end
    return buffer[:start], entries


def pack_handle(flat: torch.Tensor, entries: list[SimpleNamespace]) -> bytes:
    """A pickle that another process of this machine opens as {flattened_tensor, metadata}."""
    buffer = io.BytesIO()
    pickler = _HandlePickler(buffer)
    if flat.device.type == "cpu":
        with _named_memory():
            pickler.dump({"flattened_tensor": flat, "metadata": entries})
    else:
        pickler.dump({"flattened_tensor": flat, "metadata": entries})
    return buffer.getvalue()


def open_handle(data: bytes) -> list[tuple[str, torch.Tensor]]:
    """What `pack_handle` packed, without a copy. It is a pickle: only for bytes from our own trainer."""
    packed = _HandleUnpickler(io.BytesIO(data)).load()
    flat = packed["flattened_tensor"]
    return [
        (entry.name, flat[entry.start_idx : entry.end_idx].view(entry.dtype).view(entry.shape))
        for entry in packed["metadata"]
    ]


class _HandlePickler(ForkingPickler):
    """Names a GPU by its UUID: numbers depend on CUDA_VISIBLE_DEVICES, which differs between processes."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.is_cuda:
            rebuild, arguments = reductions.reduce_tensor(value)
            uuid = str(torch.cuda.get_device_properties(arguments[DEVICE]).uuid)
            return rebuild, (*arguments[:DEVICE], uuid, *arguments[DEVICE + 1 :])
        return NotImplemented


class _HandleUnpickler(pickle.Unpickler):
    """Knows nothing but tensors in shared memory, and finds a GPU by its UUID."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("torch.multiprocessing.reductions", "rebuild_cuda_tensor"):
            return _rebuild_by_uuid
        if module == "types" and name == "SimpleNamespace" or module.split(".")[0] == "torch":
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} has no place in a weight handle")


def _rebuild_by_uuid(*arguments: Any) -> torch.Tensor:
    for number in range(torch.cuda.device_count()):
        if str(torch.cuda.get_device_properties(number).uuid) == arguments[DEVICE]:
            here = (*arguments[:DEVICE], number, *arguments[DEVICE + 1 :])
            return reductions.rebuild_cuda_tensor(*here)
    raise RuntimeError(f"the trainer's GPU {arguments[DEVICE]} is not visible to this process")


class _named_memory:
    """Shared memory that a process which is no relative can open by its name."""

    def __enter__(self) -> None:
        self._usual = torch.multiprocessing.get_sharing_strategy()
        torch.multiprocessing.set_sharing_strategy("file_system")

    def __exit__(self, *_: object) -> None:
        torch.multiprocessing.set_sharing_strategy(self._usual)
