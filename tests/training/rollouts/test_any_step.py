"""A step is made of whatever comes back, under any knobs: members without turns, groups of one, no entry."""

from __future__ import annotations

import hashlib
import math
import random
from typing import Any

import pytest

from testing.training.sample_values import make_group, make_task, make_trajectory, make_turn
from training.contracts.config import ConfigError
from training.contracts.coordinator import ReplayCandidate
from training.contracts.observed_text import ObservedText
from training.contracts.types import Action, ActionKind, Group, Observation, TrajectoryStatus, Turn
from training.render.renderer import Renderer

MOST = 0.4
"""`replay.max_advantage` where it is set."""
STATUSES = (TrajectoryStatus.TERMINATED, TrajectoryStatus.TRUNCATED, TrajectoryStatus.ERRORED)


def turn(index: int, screen: str) -> Turn:
    tree = ObservedText(sha256=hashlib.sha256(screen.encode()).hexdigest())
    seen = Observation(sha256="", width=128, height=96, text="go", accessibility=tree)
    return make_turn(index, observation=seen)


def any_group(group_id: int, chance: random.Random) -> Group:
    rewards = chance.choices((0.0, 0.3, 1.0), (5, 1, 2), k=chance.randint(1, 4))
    task = make_task(f"task-{group_id}", family=chance.choice("ab"))
    group = make_group(rewards, group_id=group_id, task=task)
    members = []
    for place, member in enumerate(group.trajectories):
        screens = chance.choices(("desk", "menu", "x", "y"), k=chance.randint(0, 3))
        status = chance.choices(STATUSES, (3, 1, 1))[0]
        changes: dict[str, Any] = {
            "trajectory_id": 100 * group_id + place,
            "status": status,
            "turns": tuple(turn(index, screen) for index, screen in enumerate(screens)),
        }
        if status is TrajectoryStatus.ERRORED:
            changes |= {"score": None, "reward": None}
        members.append(member.model_copy(update=changes))
    return group.model_copy(update={"trajectories": tuple(members)})


def any_entry(number: int, chance: random.Random, renderer: Renderer) -> ReplayCandidate:
    """Of one of the tasks, as a policy sampled it or to be written anew."""
    turns = (make_turn(fingerprint=renderer.fingerprint),)
    if chance.random() < 0.5:
        turns = (turns[0].model_copy(update={"action": Action(kind=ActionKind.CLICK, x=5, y=5)}),)
    trajectory = make_trajectory(9000 + number, 1.0, replay_entry_id=number, turns=turns)
    trajectory = trajectory.model_copy(update={"task": make_task(f"task-{chance.randint(1, 4)}")})
    age = chance.choice((None, 0, 2))
    return ReplayCandidate(entry_id=number, label="gold", policy_age=age, trajectory=trajectory)


def any_knobs(chance: random.Random) -> dict[str, dict[str, Any]]:
    algorithm = {
        "credit": chance.choice(("trajectory", "shared_states", "branches")),
        "skip_zero_variance": chance.choice((True, False)),
        "mask_truncated": chance.choice((True, False)),
        "void_turns": chance.choice(("no_credit", "negative", "mask", "keep", "mask_trajectory")),
        "scale_advantages": chance.choice((True, False)),
    }
    replay = {
        "enabled": True,
        "injection": chance.choice(("recorded", "likelihood", "advantage")),
        "max_share": chance.choice((0.0, 0.25, 1.0)),
        "sft_share": chance.choice((0.0, 0.5, 1.0)),
        "max_advantage": chance.choice((0.0, MOST)),
    }
    if algorithm["credit"] == "trajectory":
        algorithm |= chance.choice(({}, {"turn_discount": 0.9}, {"baseline": "leave_one_out"}))
    return {"algorithm": algorithm, "replay": replay}


@pytest.mark.parametrize("seed", range(100))
def test_a_step_is_made_with_finite_weights_within_their_bounds(
    seed: int, prepare, toy_renderer: Renderer
) -> None:
    chance = random.Random(seed)
    groups = [any_group(number, chance) for number in range(1, chance.randint(1, 5))]
    entries = tuple(any_entry(number, chance, toy_renderer) for number in range(chance.choice((0, 2, 5))))
    knobs = any_knobs(chance)
    try:
        batch = prepare(groups, entries, prompt={"observation": ["accessibility"]}, **knobs)
    except ConfigError:
        return  # knobs that exclude each other
    assert all(map(math.isfinite, batch.advantages.values()))
    is_bounded = knobs["replay"]["max_advantage"] == MOST
    for sample in batch.samples:
        assert sample.num_loss_tokens
        assert all(map(math.isfinite, sample.token_advantages))
        if sample.replay_entry_id is not None:
            assert sample.likelihood_weight > 0 or sample.advantage <= 0
            if is_bounded:
                assert max((sample.advantage, *sample.token_advantages)) <= MOST
    own = {member.trajectory_id for group in groups for member in group.trajectories}
    assert {update.trajectory_id for update in batch.member_updates({})} <= own
    assert len(batch.replay_uses(1, {})) == len(batch.injections)
