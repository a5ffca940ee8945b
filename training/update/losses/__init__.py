"""The policy-gradient losses by name: one file per algorithm, one row here.

A loss maps aligned token tensors to one loss per token; `aggregation` turns those into one
number with counts of the whole batch, so that the split over ranks and microbatches is
invisible.
"""

from training.update.losses.cispo import cispo_loss
from training.update.losses.dr_grpo import dr_grpo_loss
from training.update.losses.grpo import grpo_loss
from training.update.losses.gspo import gspo_loss
from training.update.losses.gspo_token import gspo_token_loss
from training.update.losses.policy_loss_contract import LossInputs, PolicyLoss, TokenLosses
from training.update.losses.rejection_fine_tuning import rejection_fine_tuning_loss
from training.update.losses.rloo import rloo_loss

POLICY_LOSSES: dict[str, PolicyLoss] = {
    "grpo": grpo_loss,
    "dr_grpo": dr_grpo_loss,
    "gspo": gspo_loss,
    "gspo_token": gspo_token_loss,
    "rloo": rloo_loss,
    "cispo": cispo_loss,
    "rejection_fine_tuning": rejection_fine_tuning_loss,
}

__all__ = ["POLICY_LOSSES", "LossInputs", "PolicyLoss", "TokenLosses"]
