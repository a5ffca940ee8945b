"""The interval of a share that was counted."""

import math

Z_95 = 1.959964


def wilson_interval(num_success: float, num_trials: float) -> tuple[float, float]:
    """95 % Wilson score interval of a proportion; (0, 1) without trials."""
    if num_trials == 0:
        return 0.0, 1.0
    share, z2 = num_success / num_trials, Z_95**2
    centre = (share + z2 / (2 * num_trials)) / (1 + z2 / num_trials)
    half = (
        Z_95 / (1 + z2 / num_trials) * math.sqrt(share * (1 - share) / num_trials + z2 / (4 * num_trials**2))
    )
    return max(0.0, centre - half), min(1.0, centre + half)
