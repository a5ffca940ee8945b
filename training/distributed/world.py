"""The processes of one trainer: joining the process group, and the collectives that carry plain values.

One code path for 1 and N processes: without `training.distributed.launch` a process group of one is made in
memory.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist

from training.distributed.launch import STORE_LISTENER_VARIABLE, STORE_OF_HOSTS, STORE_VARIABLE
from training.distributed.strangers import require_own_peers

T = TypeVar("T")

COLLECTIVE_TIMEOUT = timedelta(hours=6)
"""Ranks other than 0 wait in a broadcast while desktops work; an evaluation may take long."""

MEET_WITHIN = timedelta(seconds=120)
"""The ranks of several hosts."""


class GangIncomplete(Exception):
    """Raised when ranks of other hosts did not come."""


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
    """Join (or make) the process group: nccl on CUDA, gloo on the CPU. Raises StrangerConnected."""
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
        raise ValueError(
            f"{STORE_VARIABLE} is not set: start ranks by `python -m training.distributed.launch`"
        )
    dist.init_process_group(
        backend, store=_store(path, rank, size), rank=rank, world_size=size, timeout=COLLECTIVE_TIMEOUT
    )
    require_own_peers()
    return World(dist.get_rank(), dist.get_world_size(), device)


def _store(path: str | None, rank: int, size: int) -> dist.Store:
    """Where the ranks meet: a file on one host, of several what the first serves. Raises GangIncomplete."""
    if not path:
        return dist.HashStore()
    if not path.startswith(STORE_OF_HOSTS):
        return dist.FileStore(path, size)
    name, _, port = path.removeprefix(STORE_OF_HOSTS).partition(":")
    listener = int(os.environ[STORE_LISTENER_VARIABLE]) if rank == 0 else None
    try:
        return dist.TCPStore(
            name, int(port), size, is_master=rank == 0, timeout=MEET_WITHIN, master_listen_fd=listener
        )
    except dist.DistError as error:
        raise GangIncomplete(f"not all ranks met at {name}:{port} within {MEET_WITHIN}: {error}") from error


def stop_world() -> None:
    """Leave the process group."""
    if dist.is_initialized():
        dist.destroy_process_group()


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
