"""GRPO: the clipped surrogate with one importance ratio per token.

    r_t = exp(policy_t - old_t)
    L_t = max(-r_t A, -clip(r_t, 1 - clip_low, 1 + clip_high) A)

Source: DeepSeekMath, arXiv 2402.03300, eq. 3; separate bounds ("clip higher"): DAPO, arXiv
2503.14476. By default old is what the engine recorded (`algorithm.old_logprobs: engine`): the exact
importance weight of off-policy tokens, which shows any engine/trainer mismatch instead of hiding it.
"""

from training.update.losses.clipped_surrogate import clipped_surrogate
from training.update.losses.policy_loss_contract import MAX_LOG_RATIO, LossInputs, TokenLosses, log_ratio


def grpo_loss(inputs: LossInputs) -> TokenLosses:
    """Token losses of GRPO, [B, T]."""
    ratio = log_ratio(inputs).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
    return clipped_surrogate(ratio, inputs)
