"""Which of an attempt's GPUs the trainer's processes and the engine's servers get.

The attempt has the GPUs that it was placed on. Own placement of SGLang: the trainer's come first, the servers
have those behind them. Otherwise trainer and engine share all. On a host without GPUs nothing is set.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings

from training.contracts.config import ExperimentConfig
from workers.gpu.nvml import open_gpus

ORDER = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
"""NVML's numbers; CUDA's own order puts the fastest first."""


class TooFewGpus(Exception):
    """Raised when the GPUs that it was placed on are not all here any more."""


def visible_gpus(environment: Mapping[str, str] = os.environ) -> list[str]:
    """What CUDA_VISIBLE_DEVICES names, or all GPUs of the host by number."""
    named = environment.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [gpu.strip() for gpu in named.split(",") if gpu.strip()]
    found = open_gpus()
    return [str(gpu["index"]) for gpu in found.describe()] if found else []


def placed_gpus(keys: Sequence[str], gpus: Sequence[dict[str, Any]] | None = None) -> list[str]:
    """Numbers of this host's GPUs with these keys; none for places of a host without. Raises TooFewGpus."""
    if gpus is None:
        found = open_gpus()
        gpus = found.describe() if found else []
    if settings.GPU_LAUNCHER != "celery":  # the job has what its scheduler gave it
        return visible_gpus()
    numbers = {str(gpu["uuid"]): str(gpu["index"]) for gpu in gpus}
    wanted = [key for key in keys if not _is_cpu_place(key)]
    if missing := [key for key in wanted if key not in numbers]:
        raise TooFewGpus(f"{len(missing)} of {len(wanted)} GPUs that it was placed on are gone: {missing}")
    return [numbers[key] for key in wanted]


def trainer_and_engine(
    config: ExperimentConfig, gpus: Sequence[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Environment variables (of the trainer, of the policy server) on these GPUs. Raises TooFewGpus."""
    engine, processes = config.engine, config.optimiser.num_processes
    if engine.name != "sglang":
        shared = ORDER | {"CUDA_VISIBLE_DEVICES": ",".join(gpus)} if gpus else {}
        return shared, shared
    wanted = config.num_gpus
    if len(gpus) < wanted:
        raise TooFewGpus(
            f"engine.servers: the trainer's {processes} and the engine's {engine.num_gpus} GPUs "
            f"({engine.placement}) make {wanted}, but it was placed on {len(gpus)}"
        )
    first = 0 if engine.placement == "colocated" else processes
    servers = gpus[first : first + engine.num_gpus]
    # The policy server's own process stays off the GPUs; it hands them on.
    return (
        ORDER | {"CUDA_VISIBLE_DEVICES": ",".join(gpus[:processes])},
        ORDER | {"DESKHAND_ENGINE_GPUS": ",".join(servers)},
    )


def _is_cpu_place(key: str) -> bool:
    return key.rpartition("/")[2].startswith("cpu")
