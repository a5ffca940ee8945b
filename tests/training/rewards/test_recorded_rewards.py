"""Rewards of recorded trajectories, to the last bit: a stored reward and its preset's name stay true.

`recorded_rewards.json` holds trajectories of 0 to 23 turns with the rewards that every preset gave them when
it was released. A preset that must count otherwise is a new version; to record a new one, run this file.
"""

import json
from pathlib import Path

import pytest

from training.contracts.config.reward_presets import (
    REPLACED,
    REWARD_PRESETS,
    SHIPPED_PRESETS,
    RewardConfig,
)
from training.contracts.observed_text import MeasuredTurn
from training.contracts.types import Action, Observation, Turn
from training.rewards import compute_reward

FILE = Path(__file__).with_name("recorded_rewards.json")
RECORDED = json.loads(FILE.read_text())
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
        measured=MeasuredTurn.model_validate(values["measured"]) if "measured" in values else None,
    )


def reward(row: dict, preset: str) -> dict:
    turns = [turn(index, values) for index, values in enumerate(row["turns"])]
    rewards = RewardConfig(preset=preset, alpha=row["alpha"])
    result = compute_reward(turns, row["score"], rewards, max_turns=row["max_turns"])
    return {
        "reward": result.reward,
        "terms": {term.name: [term.value, term.weight, term.contribution] for term in result.terms},
        "turn_terms": [{term.name: term.contribution for term in terms} for terms in result.turn_terms],
    }


@pytest.mark.parametrize(("number", "preset"), CASES)
def test_a_recorded_trajectory_has_the_reward_that_it_had(number, preset):
    row = RECORDED[number]
    assert reward(row, preset) == row["rewards"][preset]


def test_every_preset_is_recorded():
    assert {preset for _, preset in CASES} == set(REWARD_PRESETS), "record the new preset: run this file"


def values_of_terms(preset: str) -> dict[str, set[float]]:
    """Term of a preset -> its values in the recorded trajectories."""
    found: dict[str, set[float]] = {}
    for row in RECORDED:
        for name, (value, *_) in row["rewards"][preset]["terms"].items():
            found.setdefault(name, set()).add(value)
    return found


@pytest.mark.parametrize("preset", SHIPPED_PRESETS)
def test_no_term_of_a_preset_is_a_constant(preset):
    found = values_of_terms(preset)
    assert {name for name, values in found.items() if len(values) < 2} == set()


@pytest.mark.parametrize("preset", REPLACED)
def test_a_preset_that_new_runs_are_not_offered_has_a_constant_term(preset):
    assert any(values == {0.0} for values in values_of_terms(preset).values())


def record_new_presets() -> None:
    """Add the rewards of presets that the file does not have; recorded ones stay."""
    for row in RECORDED:
        for preset in REWARD_PRESETS:
            row["rewards"].setdefault(preset, reward(row, preset))
    FILE.write_text("[\n" + ",\n".join(json.dumps(row, separators=(",", ":")) for row in RECORDED) + "\n]\n")


if __name__ == "__main__":
    record_new_presets()
