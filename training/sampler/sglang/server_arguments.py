"""From a config to running servers: which interpreter, which arguments, which GPUs.

The installation is read from the policy server's environment, which the gpu worker sets:

    DESKHAND_SGLANG_PYTHON   interpreter that can import SGLang; default .venv-sglang/bin/python of this tree
    DESKHAND_SGLANG_PATH     further folders with modules for it (an unpacked site folder); default none
    DESKHAND_ENGINE_GPUS     GPUs of the servers, e.g. "2,3"; default: all that are visible
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from training.contracts.config import ExperimentConfig
from training.planning.model_json import read_object, text_part
from training.sampler.engine import EngineError
from training.sampler.sglang.server_process import REPOSITORY, Launch

DEFAULT_PYTHON = REPOSITORY / ".venv-sglang" / "bin" / "python"
CONTEXT_SPARE = 16
"""SGLang counts a few tokens more than it gives out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SglangInstallation:
    """What the machine offers."""

    python: str
    python_path: str
    gpus: tuple[str, ...]
    """Empty = whatever SGLang sees."""
    log_folder: Path

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], log_folder: Path) -> SglangInstallation:
        """Raises EngineError when there is no interpreter for SGLang."""
        python = environment.get("DESKHAND_SGLANG_PYTHON") or str(DEFAULT_PYTHON)
        if shutil.which(python) is None:
            raise EngineError(
                f"engine.name sglang: no interpreter {python}; run `make sglang-env`, or set "
                "DESKHAND_SGLANG_PYTHON to a Python that can import sglang"
            )
        gpus = environment.get("DESKHAND_ENGINE_GPUS", "")
        return cls(
            python=python,
            python_path=environment.get("DESKHAND_SGLANG_PATH", ""),
            gpus=tuple(gpu for gpu in gpus.split(",") if gpu),
            log_folder=log_folder,
        )


def launch_of(
    config: ExperimentConfig,
    model: str,
    installation: SglangInstallation,
    image_folder: Path,
    attempt: int = 0,
) -> Launch:
    return Launch(
        python=installation.python,
        python_path=installation.python_path,
        image_folder=image_folder,
        log_folder=installation.log_folder,
        arguments=tuple(arguments_of(config, model)),
        seed=config.optimiser.seed,
        attempt=attempt,
    )


def gpu_sets(config: ExperimentConfig, gpus: tuple[str, ...]) -> list[tuple[str, ...]]:
    """One set of GPUs per server. Raises EngineError when there are too few."""
    engine = config.engine
    if not gpus and engine.num_gpus == 1:
        return [()]
    gpus = gpus or tuple(str(number) for number in range(engine.num_gpus))
    if len(gpus) < engine.num_gpus:
        raise EngineError(
            f"engine.servers: {engine.servers} servers of {engine.gpus_per_server} GPUs need "
            f"{engine.num_gpus}, but the engine has {len(gpus)} ({','.join(gpus)})"
        )
    width = engine.gpus_per_server
    return [gpus[width * number : width * (number + 1)] for number in range(engine.servers)]


def arguments_of(config: ExperimentConfig, model: str) -> list[str]:
    """Arguments of `sglang.launch_server`, beside model, version, address and seed."""
    engine = config.engine
    dtype = config.model.dtype if engine.dtype == "model" else engine.dtype
    arguments = [
        f"--dtype={dtype}",
        f"--tp-size={engine.gpus_per_server}",
        f"--mem-fraction-static={engine.memory_fraction}",
        f"--context-length={context_length(config, model)}",
        # The server's own warm-up sends an image by its own format; ours is the canary.
        "--skip-server-warmup",
        "--grammar-backend=none",
        "--sampling-backend=pytorch",
        "--log-level-http=warning",
    ]
    if engine.attention_backend != "auto":
        arguments.append(f"--attention-backend={engine.attention_backend}")
    if engine.attention_backend == "triton":
        arguments.append("--mm-attention-backend=triton_attn")
    if config.model.fp32_logits and dtype != "float32":
        arguments.append("--enable-fp32-lm-head")  # see training.sampler.sglang.served_model for its cost
    if engine.max_running:
        arguments.append(f"--max-running-requests={engine.max_running}")
    if engine.gives_memory:
        # Weights come back from host memory, so that a step without a sync finds them as they were.
        arguments += ["--enable-memory-saver", "--enable-weights-cpu-backup"]
    if config.lora.rank:
        # Of two versions at once: the new one is loaded before the old one goes.
        arguments += ["--enable-lora", f"--max-lora-rank={config.lora.rank}", "--max-loras-per-batch=2"]
        arguments += ["--lora-target-modules", *config.lora.targets]
    return [*arguments, *engine.extra_arguments]


def context_length(config: ExperimentConfig, model: str) -> int:
    """Tokens of a trajectory, at most what the model was made for."""
    longest = text_part(read_object(Path(model) / "config.json")).get("max_position_embeddings")
    wanted = config.sampling.max_context_tokens + CONTEXT_SPARE
    return min(wanted, int(longest)) if longest else wanted


def log_folder_beside(port_file: str | None) -> Path:
    """Where the servers' logs go: beside the policy server's other files."""
    return (Path(port_file).parent if port_file else Path(os.getcwd())) / "logs"
