"""The process group between the trainer (rank 0) and the engine's processes, beside their own groups.

torch has one default group per process; a second one that spans two jobs is made as SGLang makes its end
(`sglang.srt.utils.init_custom_process_group`), key by key, or the two ends would not find each other.
"""

import contextlib
import socket
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

JOIN_TIMEOUT = timedelta(seconds=180)
"""Also the limit of one broadcast."""
HOST = "127.0.0.1"


def open_store(world_size: int) -> dist.TCPStore:
    """The meeting point on a free loopback port; does not wait for the others."""
    # torch's own listener would take connections from the whole network.
    listener = socket.create_server((HOST, 0))
    return dist.TCPStore(
        HOST,
        listener.getsockname()[1],
        world_size,
        is_master=True,
        wait_for_workers=False,
        timeout=JOIN_TIMEOUT,
        master_listen_fd=listener.detach(),
    )


def find_store(address: str, port: int, world_size: int) -> dist.TCPStore:
    """The meeting point that the trainer opened."""
    return dist.TCPStore(
        address, port, world_size, is_master=False, wait_for_workers=False, timeout=JOIN_TIMEOUT
    )


def join(store: dist.Store, *, rank: int, world_size: int, name: str, backend: str) -> dist.ProcessGroup:
    """Join the group `name`; gloo blocks until all have joined, with nccl the first broadcast does."""
    group, _ = c10d._new_process_group_helper(
        world_size,
        rank,
        [],
        dist.Backend(backend),
        dist.PrefixStore(name, store),
        group_name=name,  # type: ignore[arg-type]  # a NewType of str, in new releases of torch only
        timeout=JOIN_TIMEOUT,
    )
    c10d._world.pg_group_ranks[group] = {member: member for member in range(world_size)}
    return group


def broadcast(tensors: list[torch.Tensor], group: dist.ProcessGroup) -> list[dist.Work]:
    """Start sending (rank 0) or receiving each tensor in order."""
    return [dist.broadcast(tensor, src=0, group=group, async_op=True) for tensor in tensors]


def abort(group: dist.ProcessGroup) -> None:
    """End a group whose peers are gone or stuck: what waits in it is given up."""
    with contextlib.suppress(RuntimeError, ValueError, KeyError):
        c10d._abort_process_group(group)
