"""Which GPUs the trainer's processes and the engine's servers get.

Own placement: the trainer's GPUs come first, the servers have those behind them. Colocated: both share.
Without SGLang nothing is set: everybody sees what the gpu worker sees.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from training.contracts.config import ExperimentConfig
from workers.gpu.nvml import open_gpus


class TooFewGpus(Exception):
    """Raised when trainer and engine ask for more GPUs than the worker has; trying again cannot help."""


def visible_gpus(environment: Mapping[str, str] = os.environ) -> list[str]:
    """What CUDA_VISIBLE_DEVICES names, or all GPUs of the host by number."""
    named = environment.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [gpu.strip() for gpu in named.split(",") if gpu.strip()]
    found = open_gpus()
    return [str(gpu["index"]) for gpu in found.describe()] if found else []


def num_gpus_held(config: ExperimentConfig, visible: list[str] | None = None) -> int:
    """GPUs that an attempt keeps from others; 0 on a machine without."""
    gpus = visible_gpus() if visible is None else visible
    return min(len(gpus), config.num_gpus)


def trainer_and_engine(
    config: ExperimentConfig, visible: list[str] | None = None
) -> tuple[dict[str, str], dict[str, str]]:
    """Environment variables (of the trainer, of the policy server). Raises TooFewGpus."""
    engine, processes = config.engine, config.optimiser.num_processes
    if engine.name != "sglang":
        return {}, {}
    gpus = visible_gpus() if visible is None else visible
    wanted = config.num_gpus
    if len(gpus) < wanted:
        raise TooFewGpus(
            f"engine.servers: the trainer's {processes} and the engine's {engine.num_gpus} GPUs "
            f"({engine.placement}) make {wanted}, but the gpu worker has {len(gpus)}"
        )
    first = 0 if engine.placement == "colocated" else processes
    servers = gpus[first : first + engine.num_gpus]
    # The policy server's own process stays off the GPUs; it hands them on.
    return (
        {"CUDA_VISIBLE_DEVICES": ",".join(gpus[:processes])},
        {"DESKHAND_ENGINE_GPUS": ",".join(servers)},
    )
