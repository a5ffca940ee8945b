"""The channels by name, and which one an experiment uses."""

from collections.abc import Callable

import torch

from training.contracts.config import EngineConfig
from training.weights.channel import Channel, Sender
from training.weights.disk_channel import DiskChannel
from training.weights.ipc_channel import IpcChannel
from training.weights.nccl_channel import NcclChannel

CHANNELS: dict[str, Callable[[Sender], Channel]] = {
    "disk": DiskChannel,
    "nccl": NcclChannel,
    "ipc": IpcChannel,
}


def channel_name(engine: EngineConfig, device: torch.device) -> str:
    """The channel that `engine.weight_sync` asks for; auto = the quickest that is possible."""
    if engine.weight_sync != "auto":
        return engine.weight_sync
    if device.type != "cuda":
        return "disk"
    # The engine `transformers` lives on the trainer's first GPU.
    is_shared = engine.name == "transformers" or engine.placement == "colocated"
    return "ipc" if is_shared else "nccl"


def num_engine_ranks(engine: EngineConfig) -> int:
    """Processes of the engine that hold (a part of) the model."""
    return max(engine.num_gpus, 1)
