"""The two-phase temperature schedule of the GRPO stage: explore first, sharpen later.

    temperature(step) = sampling.temperature            step < sampling.later_from_step
                        sampling.later_temperature      from then on

Source: Slime-OSWorld's two phases (0.8, then 0.5). Sampling and training of a step use the same
temperature, because logprobs are taken at it.
"""

from training.contracts.config import SamplingConfig


def temperature_at(config: SamplingConfig, step: int) -> float:
    """Sampling temperature of the 0-based GRPO `step`."""
    if config.later_temperature and step >= config.later_from_step:
        return config.later_temperature
    return config.temperature
