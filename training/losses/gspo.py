"""GSPO: the clipped surrogate with one importance ratio per sequence.

    s   = sum_t m_t (policy_t - behaviour_t) / sum_t m_t
    L_t = max(-exp(s) A, -clip(exp(s), 1 - clip_low, 1 + clip_high) A)     for every token t

Source: Group Sequence Policy Optimization, arXiv 2507.18071, eq. 5 to 7. The gradient flows
through s. Useful clips are much smaller than GRPO's: about 3e-4.
"""

from __future__ import annotations

from training.losses.inputs import MAX_LOG_RATIO, LossInputs, TokenLosses, clipped_surrogate, log_ratio


def gspo_loss(inputs: LossInputs) -> TokenLosses:
    """Token losses of GSPO, [B, T]; every token of a sequence has the sequence's loss."""
    num_tokens = inputs.mask.sum(dim=-1).clamp(min=1.0)
    mean_log_ratio = (log_ratio(inputs) * inputs.mask).sum(dim=-1) / num_tokens
    ratio = mean_log_ratio.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
    return clipped_surrogate(ratio[:, None].expand_as(inputs.mask), inputs)
