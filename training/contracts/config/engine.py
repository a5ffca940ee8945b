"""The section of the config that says what draws completions, and its rules with others; torch-free."""

from __future__ import annotations

from typing import Literal

from training.contracts.config.section import Section, knob


class EngineConfig(Section):
    """What samples completions for the policy server."""

    name: Literal["transformers", "sglang"] = knob(
        "transformers",
        "transformers: in the policy server's own process, CPU or one GPU, for small models. "
        "sglang: servers of their own on NVIDIA GPUs (`make sglang-env`).",
    )
    servers: int = knob(1, "SGLang: servers; each holds the whole model.", unit="servers", ge=1, le=64)
    gpus_per_server: int = knob(1, "SGLang: GPUs of one server (tensor parallel).", unit="GPUs", ge=1, le=8)
    placement: Literal["own", "colocated"] = knob(
        "own",
        "SGLang: own = on the GPUs behind the trainer's; colocated = on the trainer's GPUs, where they "
        "give their memory back during the optimiser step.",
    )
    memory_fraction: float = knob(
        0.8,
        "SGLang: share of the memory that is free at its start, for weights, keys and values.",
        ge=0.05,
        le=0.95,
    )
    attention_backend: Literal["auto", "triton", "fa3", "flashinfer"] = knob(
        "auto",
        "SGLang: attention kernels. auto = its own choice; triton compiles everything itself and needs no "
        "binary kernels.",
    )
    dtype: Literal["model", "bfloat16", "float16", "float32"] = knob(
        "model", "SGLang: compute type; model = model.dtype."
    )
    weight_sync: Literal["auto", "disk", "nccl", "ipc"] = knob(
        "auto",
        "How new weights reach the engine. nccl: broadcast between GPUs (placement own); ipc: handles on the "
        "same GPU (colocated, transformers); disk: a folder that the engine reads, in memory when it fits; "
        "auto: the quickest possible. Without a GPU, nccl is gloo and ipc is shared memory.",
    )
    max_running: int = knob(
        0, "SGLang: sequences decoded at once per server; 0 = its own choice.", unit="sequences", ge=0
    )
    start_timeout_s: float = knob(
        900.0, "SGLang: limit for start-up; a first start compiles for minutes.", unit="s", gt=0
    )
    max_restarts: int = knob(
        3, "SGLang: restarts of servers that ended before the experiment is given up.", ge=0, le=100
    )
    extra_arguments: tuple[str, ...] = knob(
        (), "SGLang: further arguments of `sglang.launch_server`, e.g. --chunked-prefill-size=4096."
    )

    @property
    def num_gpus(self) -> int:
        """GPUs that the engine's servers need."""
        return self.servers * self.gpus_per_server if self.name == "sglang" else 0


def engine_problems(engine: EngineConfig, num_processes: int) -> list[tuple[str, str]]:
    """(field path, message) of what cannot run together."""
    found: list[tuple[str, str]] = []
    if engine.name == "transformers":
        return found
    if engine.placement == "colocated" and engine.num_gpus > num_processes:
        found.append(
            (
                "engine.servers",
                f"{engine.num_gpus} GPUs for the servers, but the trainer has {num_processes}: colocated "
                "servers live on the trainer's GPUs",
            )
        )
    if engine.placement == "colocated" and engine.weight_sync == "nccl":
        found.append(("engine.weight_sync", "nccl cannot have two processes on one GPU: use ipc or disk"))
    if engine.placement == "own" and engine.weight_sync == "ipc":
        found.append(("engine.weight_sync", "ipc needs engine.placement colocated: use nccl or disk"))
    if any(not argument.startswith("-") for argument in engine.extra_arguments):
        found.append(
            ("engine.extra_arguments", "each entry is one argument with its value: --name or --name=value")
        )
    return found
