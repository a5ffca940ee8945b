"""`algorithm.credit: shared_states` from groups of desktops to the advantages of tokens."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from testing.training.sample_values import make_group, make_turn
from tests.training.conftest import toy_config
from training.contracts.config import ConfigError
from training.contracts.observed_text import ObservedText
from training.contracts.types import Group, Observation, Turn


def turn(index: int, screen: str) -> Turn:
    tree = ObservedText(sha256=hashlib.sha256(screen.encode()).hexdigest())
    seen = Observation(sha256="", width=128, height=96, text="go", accessibility=tree)
    return make_turn(index, observation=seen)


def group_of(rows: list[tuple[float, list[str]]]) -> Group:
    group = make_group([reward for reward, _ in rows])
    members = tuple(
        member.model_copy(update={"turns": tuple(turn(index, name) for index, name in enumerate(screens))})
        for member, (_, screens) in zip(group.trajectories, rows, strict=True)
    )
    return group.model_copy(update={"trajectories": members})


def test_tokens_have_the_advantage_of_their_turn(prepare) -> None:
    group = group_of(
        [(1.0, ["desk", "menu"]), (0.0, ["desk", "menu"]), (0.0, ["desk", "other"]), (0.0, ["desk", "other"])]
    )
    algorithm = {"credit": "shared_states", "scale_advantages": False}
    batch = prepare([group], prompt={"observation": ["accessibility"]}, algorithm=algorithm)
    found = {
        sample.trajectory_id: [
            round(value, 6)
            for value, bit in zip(sample.token_advantages, sample.loss_mask, strict=True)
            if bit
        ]
        for sample in batch.samples
    }
    # The start is worth 0.25, "menu" 0.5 and "other" 0; each turn has two tokens.
    assert found == {
        10: [0.25, 0.25, 0.5, 0.5],
        11: [0.25, 0.25, -0.5, -0.5],
        12: [-0.25, -0.25, 0.0, 0.0],
        13: [-0.25, -0.25, 0.0, 0.0],
    }
    assert batch.advantages[11] == pytest.approx(-0.125), "the mean of its turns"


@pytest.mark.parametrize(
    ("algorithm", "field"),
    [
        ({"name": "gspo"}, "algorithm.credit"),
        ({"turn_discount": 0.9}, "algorithm.turn_discount"),
        ({"baseline": "leave_one_out"}, "algorithm.baseline"),
        ({"name": "rejection_fine_tuning"}, "algorithm.credit"),
    ],
)
def test_what_has_no_advantage_by_turn_refuses_credit(toy_model: Path, algorithm: dict, field: str) -> None:
    with pytest.raises(ConfigError, match=field):
        toy_config(toy_model, algorithm={"credit": "shared_states"} | algorithm)
