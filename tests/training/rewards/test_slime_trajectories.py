"""`slime-osworld.v2` is Slime-OSWorld's own number on ten trajectories of real desktops.

`slime_trajectories.json`: `testing.slime_trajectories` as it was played with accessibility on, and what the
original's unchanged code (8ba30a4, its grpo_config.yaml) said to the same screenshots, trees and terminals.
`tests/workers/env/test_slime_trajectories.py` plays them anew.
"""

import json
from pathlib import Path

import pytest

from training.contracts.config import RewardConfig
from training.contracts.types import Observation, Turn
from training.rewards import compute_reward

RECORDED = json.loads(Path(__file__).with_name("slime_trajectories.json").read_text())
NAMES = {
    "action_parse_valid": "action_parse_valid.v1",
    "action_executed": "action_executed.v1",
    "a11y_grounding": "a11y_grounding.v2",
    "tool_calling": "tool_calling.v2",
    "efficiency": "efficiency.v1",
    "screen_diff": "screen_change.v2",
    "a11y_delta": "a11y_change.v2",
    "terminal_changed": "terminal_change.v2",
    "wait_penalty": "wait_penalty.v1",
}
"""The original's component -> our term."""


@pytest.mark.parametrize("row", RECORDED, ids=lambda row: row["name"])
def test_the_reward_and_each_term_are_the_originals(row):
    shown = Observation(sha256="", width=512, height=384)
    turns = [Turn(index=index, observation=shown, **values) for index, values in enumerate(row["turns"])]
    found = compute_reward(
        turns, row["score"], RewardConfig(preset="slime-osworld.v2"), max_turns=row["max_turns"]
    )
    theirs = dict(row["original"])
    assert found.reward == pytest.approx(theirs.pop("reward"), abs=1e-6)
    ours = {term.name: term.value for term in found.terms}
    assert {name: ours[NAMES[name]] for name in theirs} == pytest.approx(theirs, abs=1e-6)


def test_every_component_of_the_original_takes_two_values_in_them():
    assert len(RECORDED) == 10
    for name in ["reward", *NAMES]:
        assert len({row["original"][name] for row in RECORDED}) > 1, name
