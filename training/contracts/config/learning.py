"""Sections about learning: SFT, the algorithm, replay, the optimiser and how the model is laid out.

Formulas and sources of every algorithm are in `training/update/losses/` and in docs/algorithms.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from training.contracts.config.section import Problem, Section, knob


class SftConfig(Section):
    """SFT on demonstrations before the first GRPO step; stops by held-out success, not by steps."""

    enabled: bool = knob(False, "Run the SFT stage first.")
    source: Literal["oracle", "replay"] = knob(
        "oracle",
        "Whom to imitate: oracles, recorded as needed; or what people accepted into the replay buffer "
        "(their own demonstrations, imported and sampled successes).",
    )
    demonstrations_per_family: int = knob(
        200, "Demonstrations per family on train tasks.", unit="trajectories", ge=1
    )
    batch_size: int = knob(16, "Sequences per optimiser step.", ge=1)
    learning_rate: float = knob(2e-3, "AdamW rate (embeddings, vectors).", gt=0, le=1)
    muon_learning_rate: float = knob(0.02, "Muon rate for 2-D matrices; 0 = AdamW for all.", ge=0, le=1)
    locator_questions: int = knob(
        4, "Extra 'where is this widget' questions packed per screenshot.", ge=0, le=16
    )
    entropy_coefficient: float = knob(
        0.0,
        "Entropy bonus: about 0.1 keeps a few percent of doubt in every token, which GRPO learns from.",
        ge=0,
        le=1,
    )
    max_steps: int = knob(1500, "Upper limit.", unit="steps", ge=1)
    evaluate_every: int = knob(150, "Steps between held-out evaluations.", unit="steps", ge=1)
    stop_at_success: float = knob(0.35, "Stop when held-out success reaches this.", ge=0, le=1)


class AlgorithmConfig(Section):
    """The policy-gradient loss."""

    name: Literal["grpo", "dr_grpo", "gspo", "gspo_token", "rloo", "cispo"] = knob(
        "grpo",
        "grpo, dr_grpo: token-level ratio; gspo: sequence-level ratio; gspo_token: the same with "
        "credit per token; rloo: whole-sequence ratio; cispo: clipped weight, no lost gradients.",
    )
    group_size: int = knob(8, "Trajectories of one task.", unit="trajectories", ge=2, le=128)
    groups_per_step: int = knob(4, "Tasks per optimiser step.", unit="groups", ge=1, le=1024)
    num_steps: int = knob(20, "Optimiser steps; 0 = only SFT.", unit="steps", ge=0)
    max_seconds: float = knob(
        0.0,
        "Once the GRPO stage has run for this time in an attempt, it ends with the current step and the "
        "evaluation follows; 0 = no limit.",
        unit="s",
        ge=0,
    )
    max_staleness: int = knob(
        0,
        "Policy versions that rollouts may be behind: that many steps are sampled while this one trains. "
        "0 = sample and train in turns. The further behind, the lower the learning rate that holds.",
        unit="policy versions",
        ge=0,
        le=16,
    )
    clip_low: float = knob(0.2, "Lower clip of the importance ratio.", ge=0, le=1)
    clip_high: float = knob(0.28, "Upper clip of the importance ratio.", ge=0, le=10)
    dual_clip: float = knob(
        0.0, "Bound c on the ratio of bad tokens: their loss is at most c |A|. 0 = off, else above 1.", ge=0
    )
    baseline: Literal["group_mean", "leave_one_out"] = knob(
        "group_mean", "What a reward is compared with: the mean of its group, or of its siblings."
    )
    scale_advantages: bool = knob(True, "Divide advantages by the group's standard deviation.")
    turn_discount: float = knob(
        1.0, "A turn's reward is the trajectory's times this per turn that follows it; 1 = no discount.",
        gt=0, le=1,
    )  # fmt: skip
    train_last_turns: int = knob(
        0, "Train on this number of last turns of a trajectory only; 0 = all.", unit="turns", ge=0
    )
    aggregation: Literal["token_mean", "sequence_mean", "trajectory_mean", "constant"] = knob(
        "token_mean", "How token losses become one number."
    )
    correction: Literal["none", "truncate", "mask"] = knob(
        "none",
        "Engine/trainer mismatch and staleness: none = the clipped ratio is taken against the engine's "
        "logprobs; truncate, mask = it is taken against the trainer's, and each token is weighed by "
        "trainer/engine, cut at the bounds (TIS) or left out beyond them (IcePop); clip_low and clip_high "
        "then hardly ever bind, so far-off-policy tokens ask for a lower learning rate.",
    )
    correction_low: float = knob(0.0, "Lower bound of that weight.", ge=0, le=1)
    correction_high: float = knob(2.0, "Upper bound of that weight.", ge=1)
    mask_stale_tokens: bool = knob(
        False, "Leave single tokens older than max_staleness out, instead of their whole trajectory."
    )
    kl_coefficient: float = knob(0.0, "Weight of the KL to the reference; > 0 needs a reference.", ge=0)
    kl_estimator: Literal["k1", "k2", "k3"] = knob(
        "k3", "k3, k2: terms of the loss; k1: a penalty on each token's advantage."
    )
    reference_path: str = knob("", "Frozen reference checkpoint; empty = none.")
    reference_offload: bool = knob(False, "Keep the reference's weights in host memory between uses.")
    entropy_coefficient: float = knob(0.0, "Entropy bonus.", ge=0, le=1)
    success_likelihood: float = knob(
        0.0, "Weight of an NLL term on the batch's own successes (SFT on success).", ge=0
    )
    skip_zero_variance: bool = knob(True, "Leave groups whose rewards are all equal out of the loss.")
    max_extra_groups: int = knob(
        0,
        "Limit per step: groups with equal rewards are replaced by groups of the next tasks.",
        unit="groups",
        ge=0,
        le=1024,
    )


class ReplayConfig(Section):
    """Injection of curated successes into groups in which every member failed."""

    enabled: bool = knob(False, "Inject accepted and gold entries when a whole group fails.")
    threshold: float = knob(0.5, "A group has failed when every task score is below this.", ge=0, le=1)
    max_share: float = knob(0.25, "Largest share of injected samples in a batch.", ge=0, le=1)
    max_uses: int = knob(4, "Uses of one entry per experiment.", ge=1)
    max_policy_age: int = knob(
        10_000, "Entries whose policy is older are not used.", unit="policy versions", ge=0
    )
    likelihood_weight: float = knob(
        0.5, "Weight of the NLL term for entries without behaviour logprobs (human, oracle).", ge=0
    )
    gold_first: bool = knob(True, "Prefer gold entries to accepted ones.")


class OptimiserConfig(Section):
    """The optimiser of the GRPO stage and its data layout."""

    name: Literal["adamw", "muon"] = knob("adamw", "muon: Muon for 2-D matrices, AdamW for the rest.")
    learning_rate: float = knob(1e-6, "AdamW rate.", gt=0, le=1)
    muon_learning_rate: float = knob(0.005, "Muon rate.", ge=0, le=1)
    weight_decay: float = knob(0.0, "Decoupled weight decay.", ge=0, le=1)
    warmup_steps: int = knob(0, "Steps of linear rise of the learning rate.", unit="steps", ge=0)
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
    num_processes: int = knob(1, "Processes of the trainer (FSDP2 shards).", ge=1, le=64)
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


REQUIRED: dict[str, dict[str, object]] = {
    "dr_grpo": {"scale_advantages": False, "aggregation": "constant"},
    "rloo": {"baseline": "leave_one_out", "scale_advantages": False, "aggregation": "trajectory_mean"},
}
"""Algorithm -> what its definition fixes."""
PER_SEQUENCE = ("gspo", "rloo")
"""Algorithms with one ratio, and so one advantage, per sequence."""


def algorithm_problems(algorithm: AlgorithmConfig) -> Iterator[Problem]:
    """Combinations inside the section that cannot run or would not do what they say."""
    for field, value in REQUIRED.get(algorithm.name, {}).items():
        if getattr(algorithm, field) != value:
            yield f"algorithm.{field}", f"{algorithm.name} is defined with {_text(value)}: set it"
    if algorithm.kl_coefficient > 0 and not algorithm.reference_path:
        yield "algorithm.reference_path", "kl_coefficient > 0 needs a reference checkpoint"
    if 0 < algorithm.dual_clip <= 1 + algorithm.clip_high:
        yield "algorithm.dual_clip", "must be above 1 + clip_high (3 is usual), or 0 for none"
    if algorithm.dual_clip and algorithm.name == "cispo":
        yield "algorithm.dual_clip", "cispo has no clipped surrogate to bound: set 0"
    if algorithm.name in PER_SEQUENCE:
        why = f"{algorithm.name} has one advantage per sequence: use gspo_token or grpo"
        if algorithm.turn_discount < 1:
            yield "algorithm.turn_discount", why
        if algorithm.kl_coefficient > 0 and algorithm.kl_estimator == "k1":
            yield "algorithm.kl_estimator", why
    if algorithm.max_extra_groups and not algorithm.skip_zero_variance:
        yield "algorithm.max_extra_groups", "replaces skipped groups: set skip_zero_variance"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
