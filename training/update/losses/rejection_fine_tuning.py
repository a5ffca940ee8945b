"""Rejection fine-tuning (filtered behaviour cloning): what the policy solved and ended is an SFT target.

    L_t = -policy_t      at temperature 1, on the tokens of such trajectories; no other is there

No advantage, no importance ratio, no clip: what the policy did right becomes likelier, and nothing says what
was wrong. The batch holds such trajectories alone, marked as likelihood (`rollouts.step_batch`), so the
objective's likelihood term is the whole loss and the policy-gradient term, which this is, has no token.
Source: RFT, Yuan et al., arXiv 2308.01825; the same with generation and training in turns: ReST, arXiv
2308.08998.
"""

import torch

from training.update.losses.policy_loss_contract import LossInputs, TokenLosses


def rejection_fine_tuning_loss(inputs: LossInputs) -> TokenLosses:
    """No policy-gradient term: zeros, [B, T]."""
    nothing = torch.zeros_like(inputs.mask)
    return TokenLosses(loss=nothing, importance_ratio=nothing, is_clipped=nothing)
