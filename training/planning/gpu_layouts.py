"""Qwen3-VL by size and number of GPUs: one table of layouts that any preset can be put on.

A row says how many GPUs train, how many sample, and what is saved to make it fit an H200. The
trainer's layout is the one that was measured (docs/results.md): microbatches of one trajectory,
compiled blocks, weights gathered once a step. Blocks are recomputed only as far as memory demands by
`footprint`'s estimate, which is stated in docs/presets.md and tested to leave room (`fits`).
"""

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from training.contracts.config import ExperimentConfig, parse_config
from training.planning.memory_footprint import Footprint, footprint
from training.planning.model_shape import ModelShape

GPU_BYTES = 150.1e9
"""H200: 139.8 GiB by CUDA's count, see benchmarks/results/gpu/train_throughput.json. On GPUs of 80 GB use
twice as many, or the row of the next smaller number with LoRA."""
GPU_WORDS = "150 GB (H200, sold as 141 GB)"
HEADROOM = 0.05
"""Share of a GPU's memory that the estimate leaves free; it errs by as much."""
RESERVED = 1.125
"""With several processes torch holds up to this much more than it has at work: 7 to 12 % on two and four GPUs
by the same file. On one GPU that is near full it held 1 % more."""
MICROBATCH_TOKENS = 8_704
"""The trajectories of the measurement, eight screenshots each, have 8 470."""
RECOMPUTED_SHARES = (0.0, 0.15, 0.3, 0.45, 0.6, 0.8, 1.0)
VOCABULARY = 151_936

SMALL_TOWER = {"vision_width": 1024, "vision_inner": 4096, "vision_layers": 24, "num_deepstack": 3}
LARGE_TOWER = {"vision_width": 1152, "vision_inner": 4304, "vision_layers": 27, "num_deepstack": 3}


def _shape(width: int, inner: int, layers: int, heads: int, *, is_tied: bool, tower: dict) -> ModelShape:
    return ModelShape(
        width=width,
        inner=inner,
        num_layers=layers,
        attended=heads * 128,
        cached=8 * 128,
        vocabulary=VOCABULARY,
        is_tied=is_tied,
        **tower,
    )


MODELS: dict[str, ModelShape] = {
    "2B": _shape(2048, 6144, 28, 16, is_tied=True, tower=SMALL_TOWER),
    "4B": _shape(2560, 9728, 36, 32, is_tied=True, tower=SMALL_TOWER),
    "8B": _shape(4096, 12288, 36, 32, is_tied=False, tower=LARGE_TOWER),
    "32B": _shape(5120, 25600, 64, 64, is_tied=False, tower=LARGE_TOWER),
}
"""The published dense Qwen3-VL models."""
GPU_COUNTS = (1, 2, 4, 8)


def published_shape(path: str) -> ModelShape | None:
    """The shape of a published model by the last part of its path; None for any other."""
    name = path.rstrip("/").rpartition("/")[2]
    return next((shape for size, shape in MODELS.items() if f"Qwen3-VL-{size}-" in name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """One row: how a model of a size is spread over this number of GPUs."""

    trainers: int
    """GPUs of the trainer."""
    servers: int
    """Engine servers; on their own GPUs, or on the trainer's when colocated."""
    gpus_per_server: int = 1
    is_colocated: bool = False
    memory_fraction: float = 0.8
    lora_rank: int = 0
    cpu_offload: bool = False
    keeps_weights: bool = False
    """Gather the weights once a step instead of per block: faster, 2 bytes more per weight."""

    @property
    def num_gpus(self) -> int:
        return self.trainers if self.is_colocated else self.trainers + self.servers * self.gpus_per_server

    def words(self) -> str:
        """The row in a few words."""
        engine = f"{self.servers} engine server{'s' if self.servers > 1 else ''}"
        if self.gpus_per_server > 1:
            engine += f" of {self.gpus_per_server} GPUs"
        where = (
            "on the same GPUs" if self.is_colocated else "of their own" if self.servers > 1 else "of its own"
        )
        what = f"LoRA rank {self.lora_rank}" if self.lora_rank else "all weights"
        offload = ", offloaded to host memory" if self.cpu_offload else ""
        trainers = (
            f"{self.trainers} GPU{'s' if self.trainers > 1 else ''} train{'' if self.trainers > 1 else 's'}"
        )
        return f"{trainers} {what}{offload}; {engine} {where}"


LAYOUTS: dict[tuple[str, int], Layout] = {
    ("2B", 1): Layout(trainers=1, servers=1, is_colocated=True, memory_fraction=0.4, keeps_weights=True),
    ("2B", 2): Layout(trainers=1, servers=1, keeps_weights=True),
    ("2B", 4): Layout(trainers=2, servers=2, keeps_weights=True),
    ("2B", 8): Layout(trainers=4, servers=4, keeps_weights=True),
    ("4B", 1): Layout(trainers=1, servers=1, is_colocated=True, memory_fraction=0.4, keeps_weights=True),
    ("4B", 2): Layout(trainers=1, servers=1, keeps_weights=True),
    ("4B", 4): Layout(trainers=2, servers=2, keeps_weights=True),
    ("4B", 8): Layout(trainers=4, servers=4, keeps_weights=True),
    ("8B", 1): Layout(
        trainers=1, servers=1, is_colocated=True, memory_fraction=0.45, lora_rank=32
    ),
    ("8B", 2): Layout(
        trainers=2, servers=2, is_colocated=True, memory_fraction=0.35
    ),
    ("8B", 4): Layout(trainers=2, servers=2, keeps_weights=True),
    ("8B", 8): Layout(trainers=4, servers=4, keeps_weights=True),
    ("32B", 1): Layout(
        trainers=1, servers=1, is_colocated=True, memory_fraction=0.7, lora_rank=32, cpu_offload=True,
    ),
    ("32B", 2): Layout(
        trainers=2, servers=1, gpus_per_server=2, is_colocated=True, memory_fraction=0.4, lora_rank=32,
    ),
    ("32B", 4): Layout(
        trainers=4, servers=2, gpus_per_server=2, is_colocated=True, memory_fraction=0.5, lora_rank=32,
    ),
    ("32B", 8): Layout(
        trainers=8, servers=4, gpus_per_server=2, is_colocated=True, memory_fraction=0.45,
    ),
}  # fmt: skip


def scaled(config: ExperimentConfig, size: str, num_gpus: int) -> dict[str, Any]:
    """`config` on a row of the table, as plain values (its rules may still refuse it: batch division).

    Raises ValueError for a size or number of GPUs that the table does not have.
    """
    if size not in MODELS:
        raise ValueError(f"size: there is no Qwen3-VL {size!r}; known: {', '.join(MODELS)}")
    if (size, num_gpus) not in LAYOUTS:
        raise ValueError(f"gpus: {num_gpus} is not in the table; known: {', '.join(map(str, GPU_COUNTS))}")
    row, values = LAYOUTS[size, num_gpus], config.model_dump(mode="json")
    tokens = max(MICROBATCH_TOKENS, config.sampling.max_context_tokens)
    changes: dict[str, dict[str, Any]] = {
        "model": {"path": f"Qwen3-VL-{size}-Instruct", "dtype": "bfloat16"},
        "optimiser": {
            "packing": True,
            "num_processes": row.trainers,
            "microbatch_tokens": tokens,
            "microbatch_patches": 4 * tokens,
        },
        "parallel": {
            "reshard": "never" if row.keeps_weights else "always",
            "compile_blocks": not row.cpu_offload,  # weights come from the host block by block: never tried
            "cpu_offload": row.cpu_offload,
        },
        "lora": {"rank": row.lora_rank, "alpha": 2.0 * row.lora_rank or config.lora.alpha},
        "engine": {
            "name": "sglang",
            "placement": "colocated" if row.is_colocated else "own",
            "servers": row.servers,
            "gpus_per_server": row.gpus_per_server,
            "memory_fraction": row.memory_fraction,
            "weight_sync": "auto",
        },
    }
    for section, changed in changes.items():
        values[section] |= changed
    values["parallel"] |= _least_recomputing(values, row, MODELS[size])
    return values


def _least_recomputing(values: dict[str, Any], row: Layout, shape: ModelShape) -> dict[str, Any]:
    """What must be recomputed so that the trainer leaves `HEADROOM`; everything when that is not enough.

    Gradients are summed once a step where they fit whole: it saves traffic, but recomputing costs more.
    """
    for share in RECOMPUTED_SHARES:
        for reduce in ("step", "microbatch") if row.trainers > 1 else ("microbatch",):
            found = {
                "activation_checkpointing": share > 0,
                "recomputed_share": share or 1.0,
                "reduce": reduce,
            }
            try:
                config = ExperimentConfig.model_validate(values | {"parallel": values["parallel"] | found})
            except ValidationError:  # the caller's to refuse, by the field
                return {}
            if fits(footprint(config, shape, GPU_BYTES)):
                return found
    return {"activation_checkpointing": True, "recomputed_share": 1.0, "reduce": "microbatch"}


def fits(need: Footprint) -> bool:
    """Whether the GPUs of a row hold it, with room to spare."""
    at_work = sum(need.trainer.values()) * (RESERVED if need.num_trainer_gpus > 1 else 1.0)
    return need.per_gpu <= (1 - HEADROOM) * GPU_BYTES and at_work <= GPU_BYTES


def estimate(config: ExperimentConfig, size: str, num_gpus: int) -> Footprint:
    """What `config` needs on that row, on GPUs of GPU_BYTES. Raises ValueError (ConfigError is one)."""
    return footprint(parse_config(scaled(config, size, num_gpus)), MODELS[size], GPU_BYTES)
