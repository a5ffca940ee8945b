"""The arms of the ablations: which algorithm, what void turns and a score at a limit earn, credit by turn."""

from __future__ import annotations

import json

from training.contracts.config.reward_presets import REWARD_PRESETS

Arm = dict[str, object]
"""Settings that differ from the preset."""

UPDATES = "algorithm.updates_per_batch"
STALE: Arm = {"algorithm.max_staleness": 2}
DECOUPLED: Arm = {
    "algorithm.old_logprobs": "recomputed",
    "algorithm.correction": "truncate",
    UPDATES: 2,
}
GSPO: Arm = {
    "algorithm.name": "gspo",
    "algorithm.clip_low": 3e-4,
    "algorithm.clip_high": 4e-4,
    "algorithm.old_logprobs": "recomputed",
    UPDATES: 3,
}
REPLAY: Arm = {"replay.enabled": True}
ALGORITHMS: dict[str, Arm] = {
    "grpo": {},
    "grpo, replay": REPLAY,
    "gspo": GSPO,
    # What replay injects was sampled by another policy, which only a correction knows.
    "gspo, replay": {**GSPO, **REPLAY, "algorithm.correction": "truncate"},
    "grpo, staleness 2": STALE,
    "decoupled, staleness 2": {**STALE, **DECOUPLED},
    "decoupled, staleness 2, replay": {**STALE, **DECOUPLED, **REPLAY},
}


def _credit(turns: str, preset: str, **more: object) -> Arm:
    """How void turns are trained on, and which reward; the rest as First desk has it."""
    return {"algorithm.void_turns": turns, "rewards.preset": preset, **more}


def _heavy_format(weight: float) -> str:
    """First desk's reward with another weight of parsable and of refused turns, as JSON."""
    definition = REWARD_PRESETS["first-desk.v1"].model_dump(mode="json", exclude_defaults=True)
    weights = {"parsable.v1": weight, "refused.v1": -weight}
    for row in definition["terms"]:
        row["weight"] = weights.get(row["term"], row["weight"])
    return json.dumps(definition)


V1, V2 = "first-desk.v1", "first-desk.v2"
CUT = {"algorithm.mask_truncated": True}
FORMAT = {"rewards.definition": _heavy_format(0.5)}
DECAY = {"optimiser.decay": "linear"}
VOID_TURNS: dict[str, Arm] = {
    "keep": _credit("keep", V1),
    "no_credit": _credit("no_credit", V1),
    "mask": _credit("mask", V1),
    "negative": _credit("negative", V1),
    "mask_trajectory": _credit("mask_trajectory", V1),
    "mask_trajectory, mask_truncated": _credit("mask_trajectory", V1) | CUT,
    "format 0.5": _credit("keep", "first-desk-format.v1") | FORMAT,
    "ended score": _credit("keep", V2),
    "ended score, no_credit": _credit("no_credit", V2),
    "ended score, mask": _credit("mask", V2),
    "ended score, negative": _credit("negative", V2),
    "ended score, mask_trajectory": _credit("mask_trajectory", V2),
    "ended score, no_credit, falling rate": _credit("no_credit", V2) | DECAY,
    # The rewards of two other presets, on First desk's tasks and model.
    "slime reward, keep": _credit("keep", "slime-osworld.v1"),
    "slime reward, no_credit": _credit("no_credit", "slime-osworld.v1"),
    "slime ended score, no_credit": _credit("no_credit", "slime-osworld-ended.v1"),
    "windows reward, keep": _credit("keep", "windows-keyboard.v1"),
    "windows reward, no_credit": _credit("no_credit", "windows-keyboard.v1"),
    "windows ended score, no_credit": _credit("no_credit", "windows-keyboard.v2"),
}
# The longest family that the shipped start sometimes solves: up to five turns, each of which can be wrong.
MENU: Arm = {
    "tasks.families": ["menu"],
    "evaluation.every": 5,
    "evaluation.samples_per_task": 2,
}
CREDIT: dict[str, Arm] = {
    "grpo": MENU,
    "shared_states": MENU | {"algorithm.credit": "shared_states"},
    # Half of the group has to have seen a screen, or the policy goes on from there: at 2, hardly any is left.
    "branches": MENU | {"algorithm.credit": "branches", "algorithm.least_visits": 4},
}
STUDIES = {"algorithms": ALGORITHMS, "void_turns": VOID_TURNS, "credit": CREDIT}
"""What is compared -> name of an arm -> its settings."""
