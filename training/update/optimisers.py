"""The optimisers: Muon for the inner 2-D matrices, AdamW for all other weights.

Both work on FSDP2 shards as they are, because the shards are DTensors.
Why: from random weights AdamW alone sits on the marginal distribution of coordinates for thousands
of screenshots; Muon leaves that plateau within a few hundred steps.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from training.update.learning_rates import Rates


class Optimisers:
    """Several optimisers behind the verbs of one; their learning rates scale together."""

    def __init__(self, members: Iterable[torch.optim.Optimizer]) -> None:
        self.members = list(members)
        self.initial_rates = [[group["lr"] for group in member.param_groups] for member in self.members]

    @property
    def param_groups(self) -> list[dict]:
        return [group for member in self.members for group in member.param_groups]

    def scale_rates(self, factor: float) -> None:
        """Set every learning rate to `factor` times its initial value."""
        for member, rates in zip(self.members, self.initial_rates, strict=True):
            for group, rate in zip(member.param_groups, rates, strict=True):
                group["lr"] = rate * factor

    def step(self) -> None:
        for member in self.members:
            member.step()

    def zero_grad(self, set_to_none: bool = True) -> None:
        for member in self.members:
            member.zero_grad(set_to_none=set_to_none)


def is_inner_matrix(name: str, parameter: torch.Tensor) -> bool:
    """True for the 2-D weights between layers: no embeddings, no output head, no vectors."""
    return parameter.ndim == 2 and not any(part in name for part in ("embed_tokens", "pos_embed", "lm_head"))


def make_optimisers(model: torch.nn.Module, rates: Rates) -> Optimisers:
    """Fresh optimisers over the trainable weights of `model`."""
    named = [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
    matrices: list[tuple[str, torch.nn.Parameter]] = []
    others: list[tuple[str, torch.nn.Parameter]] = []
    for name, parameter in named:
        uses_muon = rates.muon_learning_rate > 0 and is_inner_matrix(name, parameter)
        (matrices if uses_muon else others).append((name, parameter))
    members: list[torch.optim.Optimizer] = []
    if matrices:
        groups = _groups(matrices, rates, rates.muon_learning_rate)
        members.append(torch.optim.Muon(groups, momentum=0.95, weight_decay=rates.weight_decay))
    if others:
        # One kernel per step instead of one per operation; the CPU keeps its own path and its numbers.
        fused = True if all(parameter.is_cuda for _, parameter in others) else None
        members.append(
            torch.optim.AdamW(
                _groups(others, rates, rates.learning_rate),
                betas=rates.betas,
                weight_decay=rates.weight_decay,
                fused=fused,
            )
        )
    return Optimisers(members)


def _groups(
    named: Sequence[tuple[str, torch.nn.Parameter]], rates: Rates, learning_rate: float
) -> list[dict[str, Any]]:
    """One parameter group per factor of the rate; the text blocks' comes last."""
    rows: dict[float, list[torch.nn.Parameter]] = {}
    for name, parameter in named:
        rows.setdefault(_rate_factor(name, rates), []).append(parameter)
    ordered = sorted(rows.items(), key=lambda row: (row[0] == 1.0, row[0]))
    return [{"params": group, "lr": factor * learning_rate} for factor, group in ordered]


def _rate_factor(name: str, rates: Rates) -> float:
    """Of the weight of this name, in transformers' naming of Qwen3-VL."""
    if "visual." not in name:
        return 1.0
    return rates.merger_rate if "merger" in name else rates.vision_rate
