"""Rewards of recorded trajectories, to the last bit: a stored reward and its preset's name stay true.

`recorded_rewards.json` holds trajectories of 0 to 23 turns with the rewards that every preset gave them when
it was released. A preset that must count otherwise is a new version; old entries are never written anew.
"""

import json
from pathlib import Path

import pytest

from training.contracts.config.rewards import REWARD_PRESETS
from training.contracts.types import Action, Observation, Turn
from training.rewards import compute_reward

RECORDED = json.loads(Path(__file__).with_name("recorded_rewards.json").read_text())
CASES = [(number, preset) for number, row in enumerate(RECORDED) for preset in row["rewards"]]


def turn(index: int, values: dict) -> Turn:
    action = values["action"]
    return Turn(
        index=index,
        observation=Observation(sha256="", width=512, height=384),
        action=action and Action.model_validate(action),
        parse_error=None if action else "no action",
        action_error="refused" if values["refused"] else None,
        screen_changed=values["changed"],
    )


@pytest.mark.parametrize(("number", "preset"), CASES)
def test_a_recorded_trajectory_has_the_reward_that_it_had(number, preset):
    row = RECORDED[number]
    turns = [turn(index, values) for index, values in enumerate(row["turns"])]
    result = compute_reward(turns, row["score"], preset, alpha=row["alpha"], max_turns=row["max_turns"])
    assert {
        "reward": result.reward,
        "terms": {term.name: [term.value, term.weight, term.contribution] for term in result.terms},
        "turn_terms": [{term.name: term.contribution for term in terms} for terms in result.turn_terms],
    } == row["rewards"][preset]


def test_every_preset_is_recorded():
    assert {preset for _, preset in CASES} == set(REWARD_PRESETS)
