"""Dr. GRPO: GRPO without its two biases.

    A_i = R_i - mean_g                                    no division by the group's std
    L   = sum_t max(-r_t A, -clip(r_t) A) / (trajectories asked for x max tokens of one)

The token loss is GRPO's; what differs is the advantage (`algorithm.scale_advantages: false`: no
question counts more because its rewards are close) and the aggregation (`constant`: a long wrong
answer is not diluted by its own length, and no question counts more because others of the step are flat
and have left). The config refuses the name with other settings.
Source: Understanding R1-Zero-Like Training, arXiv 2503.20783, section 3.
"""

from training.update.losses.grpo import grpo_loss
from training.update.losses.policy_loss_contract import LossInputs, TokenLosses


def dr_grpo_loss(inputs: LossInputs) -> TokenLosses:
    """Token losses of Dr. GRPO, [B, T]."""
    return grpo_loss(inputs)
