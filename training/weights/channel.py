"""What every way of carrying weights has in common."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch import nn

from training.contracts.weight_requests import Canary
from training.distributed.world import World
from training.rollouts.coordinator_client import CoordinatorClient


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """The trainer's end: what is sent, and through whom."""

    model: nn.Module
    world: World
    coordinator: CoordinatorClient | None
    """None on ranks other than 0."""
    source: Path
    """Model folder whose settings and tokenizer files a folder of weights gets."""
    directory: Path
    """Where the disk channel may write when memory is short."""
    dtype: torch.dtype
    """What the engine computes in."""
    num_engine_ranks: int = 1
    """Processes of the engine that hold (a part of) the model."""

    @property
    def main_coordinator(self) -> CoordinatorClient:
        """The coordinator, on rank 0."""
        assert self.coordinator is not None, "only rank 0 speaks to the coordinator"
        return self.coordinator


class Channel(Protocol):
    """Carries versions to the engine; one per trainer process."""

    def push(self, policy_version: int) -> Canary | None:
        """Make the engine run the current weights as `policy_version`; its canary on rank 0. A collective.

        Raises SyncFailed on every rank when they did not arrive; the engine then waits for whole weights.
        """
        ...

    def close(self) -> None:
        """Give back what the channel holds. A collective."""
        ...
