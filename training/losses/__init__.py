"""The policy-gradient losses by name: one file per algorithm, one row here.

A loss maps aligned token tensors to one loss per token; `aggregation` turns those into one
number with counts of the whole batch, so that the split over ranks and microbatches is
invisible.
"""

from __future__ import annotations

from training.losses.grpo import grpo_loss
from training.losses.gspo import gspo_loss
from training.losses.inputs import LossInputs, PolicyLoss, TokenLosses

POLICY_LOSSES: dict[str, PolicyLoss] = {
    "grpo": grpo_loss,
    "gspo": gspo_loss,
}

__all__ = ["POLICY_LOSSES", "LossInputs", "PolicyLoss", "TokenLosses"]
