"""TRL's own GRPO and GSPO losses on given token tensors: what our losses are compared with.

TRL's `GRPOTrainer._compute_loss` runs on the same token tensors with its options set to match; only its
source of logprobs is replaced, by the tensors of the case.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from training.contracts.config import AlgorithmConfig
from training.update.losses import POLICY_LOSSES, LossInputs
from training.update.losses.aggregation import BatchCounts, aggregate
from training.update.losses.kl import k3_kl

LOSS_BAR = 1e-5
MAX_TOKENS = 12
"""Width of the completions of a case; TRL's `max_completion_length`."""

AGGREGATION_OF_TRL = {"dapo": "token_mean", "grpo": "sequence_mean", "dr_grpo": "constant"}
"""TRL's loss_type -> our aggregation."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One setting to compare."""

    algorithm: str
    trl_loss_type: str
    beta: float = 0.0
    entropy: float = 0.0
    clip_low: float = 0.2
    clip_high: float = 0.28

    @property
    def name(self) -> str:
        return f"{self.algorithm} {self.trl_loss_type} beta={self.beta:g} entropy={self.entropy:g}"


CASES = [
    Case(algorithm=algorithm, trl_loss_type=kind, beta=beta, entropy=entropy, **clips)
    for algorithm, clips in (("grpo", {}), ("gspo", {"clip_low": 3e-2, "clip_high": 4e-2}))
    for kind in AGGREGATION_OF_TRL
    for beta, entropy in ((0.0, 0.0), (0.04, 0.0), (0.04, 0.01))
]


def make_tensors(seed: int = 0, num_sequences: int = 8) -> dict[str, torch.Tensor]:
    """Logprobs, masks and advantages like those of a batch; completions of different lengths. [B, T]"""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    behaviour = -normal(num_sequences, MAX_TOKENS).abs()
    lengths = torch.randint(1, MAX_TOKENS + 1, (num_sequences, 1), generator=generator)
    return {
        "behaviour": behaviour,
        "policy": behaviour + 0.3 * normal(num_sequences, MAX_TOKENS),
        "reference": behaviour + 0.3 * normal(num_sequences, MAX_TOKENS),
        "entropy": normal(num_sequences, MAX_TOKENS).abs(),
        "mask": (torch.arange(MAX_TOKENS) < lengths).float(),
        "advantages": normal(num_sequences),
    }


def our_loss(case: Case, tensors: dict[str, torch.Tensor]) -> tuple[float, torch.Tensor]:
    """(loss, gradient with respect to the policy logprobs) by training.update.losses."""
    policy = tensors["policy"].clone().requires_grad_()
    mask = tensors["mask"]
    counts = BatchCounts(
        num_tokens=float(mask.sum()),
        num_sequences=float(len(mask)),
        num_trajectories=float(len(mask)),
        constant=float(len(mask) * MAX_TOKENS),
    )
    algorithm = AlgorithmConfig(name=case.algorithm, aggregation=AGGREGATION_OF_TRL[case.trl_loss_type])
    tokens = POLICY_LOSSES[algorithm.name](
        LossInputs(
            policy_logprobs=policy,
            old_logprobs=tensors["behaviour"],
            advantages=tensors["advantages"],
            mask=mask,
            clip_low=case.clip_low,
            clip_high=case.clip_high,
        )
    )
    kl = k3_kl(policy, tensors["reference"], mask)
    loss = aggregate(tokens.loss + case.beta * kl, algorithm.aggregation, mask, counts)
    loss = loss - case.entropy * (tensors["entropy"] * mask).sum() / counts.num_tokens
    loss.backward()
    return loss.item(), policy.grad


def trl_loss(case: Case, tensors: dict[str, torch.Tensor], trainer: Any) -> tuple[float, torch.Tensor]:
    """The same by TRL's own `_compute_loss`."""
    return trl_objective(
        tensors,
        trainer,
        loss_type=case.trl_loss_type,
        importance_sampling_level="sequence" if case.algorithm == "gspo" else "token",
        epsilon_low=case.clip_low,
        epsilon_high=case.clip_high,
        beta=case.beta,
        entropy_coef=case.entropy,
        _entropy_bonus_enabled=case.entropy > 0,
        inputs={"ref_per_token_logps": tensors["reference"]},
    )


def trl_objective(
    tensors: dict[str, torch.Tensor], trainer: Any, compute: Callable | None = None, **options: Any
) -> tuple[float, torch.Tensor]:
    """(loss, gradient) by `compute`, else TRL's `_compute_loss`; `options`: its settings, extra `inputs`."""
    policy = tensors["policy"].clone().requires_grad_()
    rows = len(policy)
    usual: dict[str, Any] = {
        "loss_type": "dapo", "importance_sampling_level": "token", "epsilon_low": 0.2, "epsilon_high": 0.28,
        "beta": 0.0, "entropy_coef": 0.0, "_entropy_bonus_enabled": False, "use_vllm": False,
        "vllm_importance_sampling_correction": True,
    }  # fmt: skip
    extra = options.pop("inputs", {})
    trainer.args.delta = options.pop("delta", None)
    for name, value in (usual | options).items():
        setattr(trainer, name, value)
    trainer.given = (policy, tensors["entropy"])
    inputs = {
        "prompt_ids": torch.zeros(rows, 2, dtype=torch.long),
        "prompt_mask": torch.ones(rows, 2, dtype=torch.long),
        "completion_ids": torch.zeros(rows, MAX_TOKENS, dtype=torch.long),
        "completion_mask": tensors["mask"].long(),
        "advantages": tensors["advantages"],
        "old_per_token_logps": tensors["behaviour"],
        "old_logps": (tensors["behaviour"] * tensors["mask"]).sum(dim=-1),
        "num_items_in_batch": tensors["mask"].sum(),
    } | extra
    trainer.model.train()
    loss = (compute or type(trainer)._compute_loss)(trainer, trainer.model, inputs)
    loss.backward()
    return loss.item(), policy.grad


def trl_trainer(folder: Path) -> Any:
    """A real GRPOTrainer (of a minute text model) that scores with the tensors in its `given`."""
    from datasets import Dataset
    from transformers import Qwen2Config, Qwen2ForCausalLM
    from trl import GRPOConfig, GRPOTrainer

    from training.content.recipes.tiny.make_checkpoint import make_tokenizer

    class GivenLogprobs(GRPOTrainer):
        given: tuple[torch.Tensor, torch.Tensor]

        def _get_per_token_logps_and_entropies(self, *_: Any, **__: Any) -> Any:
            return *self.given, None

    tokenizer = make_tokenizer(300)
    tokenizer.padding_side = "left"
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2, "num_key_value_heads": 2}
    model = Qwen2ForCausalLM(Qwen2Config(vocab_size=320, num_hidden_layers=1, **sizes))
    options = GRPOConfig(
        output_dir=str(folder),
        use_cpu=True,
        bf16=False,
        report_to=[],
        num_generations=4,
        per_device_train_batch_size=8,
        gradient_accumulation_steps=1,
        steps_per_generation=1,
        max_completion_length=MAX_TOKENS,
        use_bias_correction_kl=False,
    )
    trainer = GivenLogprobs(
        model=model,
        args=options,
        reward_funcs=lambda completions, **_: [0.0] * len(completions),
        train_dataset=Dataset.from_list([{"prompt": "a"}] * 8),
        processing_class=tokenizer,
    )
    trainer.current_gradient_accumulation_steps = 1  # set by the training loop, which does not run here
    return trainer
