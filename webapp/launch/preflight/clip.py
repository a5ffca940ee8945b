"""Pre-flight: does the clip of the importance ratio have something to do, and nothing else to do?"""

from collections.abc import Iterator

from training.contracts.config import ExperimentConfig
from webapp.launch.preflight.check import Check

NARROW_CLIP = 0.05
"""GSPO's published clips are below 0.001; logprobs of an engine in bfloat16 differ by 0.01 nats."""


def clip_checks(config: ExperimentConfig) -> Iterator[Check]:
    """Nothing for a clip that works."""
    algorithm = config.algorithm
    if (
        algorithm.num_steps > 1
        and algorithm.old_logprobs == "recomputed"
        and algorithm.updates_per_batch == 1
    ):
        text = (
            "The ratio is taken against the policy before the update, and with one update it is always 1. "
            "Set 2 to 4 updates, or let the learning rate alone bound a step."
        )
        yield Check("warning", "The clip never binds", text, "algorithm.updates_per_batch")
    has_own_numbers = config.engine.name == "sglang" or config.model.dtype == "bfloat16"
    is_narrow = algorithm.name in ("gspo", "gspo_token") and algorithm.clip_high < NARROW_CLIP
    if is_narrow and has_own_numbers and algorithm.old_logprobs == "engine":
        text = (
            "Engine and trainer differ by more than this clip, which takes the gradient of sequences that "
            "are exactly on policy. Set old_logprobs: recomputed."
        )
        yield Check("warning", "The clip is narrower than rounding", text, "algorithm.old_logprobs")
