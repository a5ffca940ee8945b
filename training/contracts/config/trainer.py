"""The sections of the config that say how gradients are computed; torch-free."""

from __future__ import annotations

from typing import Literal

from training.contracts.config.section import Section, knob


class OptimiserConfig(Section):
    """The optimiser of the GRPO stage and its data layout."""

    name: Literal["adamw", "muon"] = knob("adamw", "muon: Muon for 2-D matrices, AdamW for the rest.")
    learning_rate: float = knob(1e-6, "AdamW rate.", gt=0, le=1)
    muon_learning_rate: float = knob(0.005, "Muon rate.", ge=0, le=1)
    weight_decay: float = knob(0.0, "Decoupled weight decay.", ge=0, le=1)
    warmup_steps: int = knob(0, "Linear warm-up.", unit="steps", ge=0)
    max_grad_norm: float = knob(1.0, "Gradient clipping.", gt=0)
    microbatch_size: int = knob(16, "Trajectories per forward-backward.", unit="trajectories", ge=1)
    packing: bool = knob(
        False,
        "Lay sequences end to end instead of padding them; microbatches are then cut by the two budgets.",
    )
    microbatch_tokens: int = knob(16_384, "With packing: tokens per forward-backward.", unit="tokens", ge=64)
    microbatch_patches: int = knob(
        65_536, "With packing: rows of image patches per forward-backward.", unit="patches", ge=64
    )
    num_processes: int = knob(1, "torchrun processes (FSDP2 shards).", ge=1, le=64)
    seed: int = knob(0, "Seed of sampling, task order and initialisation.", ge=0)


class ParallelConfig(Section):
    """How FSDP2 lays the model out over the processes."""

    activation_checkpointing: bool = knob(
        False, "Recompute the blocks in the backward pass: less memory, about a third more computing."
    )
    recomputed_share: float = knob(
        1.0, "With activation_checkpointing: the share of the blocks that are recomputed.", gt=0, le=1
    )
    reshard: Literal["always", "never"] = knob(
        "always",
        "always = gather a block's weights again for the backward pass; never = keep them for a whole step.",
    )
    reduce: Literal["microbatch", "step"] = knob(
        "microbatch",
        "When gradients are summed over the processes. step = once, faster; each process then holds all "
        "gradients. One process always does it once, where nothing is offloaded.",
    )
    cpu_offload: bool = knob(False, "Keep weights, gradients and optimiser in host memory.")
    compile_blocks: bool = knob(False, "torch.compile every block: a minute at the start, faster steps.")


class LoraConfig(Section):
    """Train low-rank adapters instead of the weights."""

    rank: int = knob(0, "Rank of the adapters; 0 = train the weights themselves.", ge=0, le=1024)
    alpha: float = knob(32.0, "Scale: an adapter's output is multiplied by alpha / rank.", gt=0)
    targets: tuple[str, ...] = knob(
        ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
        "Names of the linear layers of the text blocks that get one.",
    )
