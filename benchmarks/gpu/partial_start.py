"""A start that fills a fifth of form8's fields rightly, so that GRPO has something to compare.

The demonstrated start never saw eight fields: GRPO from it learns one field, ends there, and compares
nothing any more. SFT of the published model on form8's own demonstrations goes before instead, until the
sampled share of right fields on held-out tasks reaches `SHARE`.
"""

FORM8 = "form8"
SHARE = 0.2
"""By chance it is an eighth, once the policy types one of the eight values into each field."""
PARTIAL_START: dict[str, object] = {
    "checkpoints.keep_last": 20,
    "sft.enabled": True,
    "sft.families": [],
    "sft.stop_at_success": SHARE,
    "sft.demonstrations_per_family": 240,
    "sft.batch_size": 8,
    "sft.learning_rate": 2e-4,
    "sft.max_steps": 320,
    "sft.evaluate_every": 10,
}
"""Where to look: 7 % after 50 steps and 51 % after 60; in another run 8 % after 40 and 72 % after 80. All 240
training tasks are shown, so that rollouts begin at 91 %."""
TINY: dict[str, object] = {
    "sft.max_steps": 2,
    "sft.evaluate_every": 1,
    "sft.demonstrations_per_family": 1,
    "sft.batch_size": 1,
}
