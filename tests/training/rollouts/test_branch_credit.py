"""`algorithm.credit: branches`: which states are measured, and what continuations make of advantages."""

from __future__ import annotations

import random

import numpy as np
import pytest

from testing.training.sample_values import make_turn
from tests.training.rollouts.test_credit_by_turn import group_of
from training.batch.advantages import BranchRewards, SharedStates, group_advantages
from training.contracts.config import ExperimentConfig, parse_config
from training.contracts.types import Group, Purpose
from training.rollouts.branch_credit import chosen_starts, with_branches

PROMPT = {"observation": ["accessibility"]}
BRANCHES = {"credit": "branches", "scale_advantages": False, "branch_size": 2, "branch_seconds": 20.0}


def config(**algorithm: object) -> ExperimentConfig:
    return parse_config({"prompt": PROMPT, "algorithm": BRANCHES | algorithm})


def lasting(group: Group, *seconds: float) -> Group:
    members = tuple(
        member.model_copy(update={"lasted_s": took})
        for member, took in zip(group.trajectories, seconds, strict=True)
    )
    return group.model_copy(update={"trajectories": members})


def branch_of(group: Group, member: int, turn: int, rewards: list[float], first_id: int = 90) -> Group:
    """Continuations of three turns in all, by the member's own first turns."""
    parent = group.trajectories[member]
    turns = (*parent.turns[:turn], *(make_turn(place) for place in range(turn, 3)))
    members = tuple(
        parent.model_copy(
            update={"trajectory_id": first_id + place, "reward": reward, "turns": turns, "group_id": 99}
        )
        for place, reward in enumerate(rewards)
    )
    return Group(
        group_id=99,
        task=group.task,
        purpose=Purpose.BRANCH,
        trajectories=members,
        parent_id=parent.trajectory_id,
        branch_turn=turn,
    )


def by_numpy(
    rewards: dict[int, float], num_turns: dict[int, int], branches: list[BranchRewards], floor: float
) -> dict[int, np.ndarray]:
    """Values before every turn on a line, filled by repeating; their differences over the deviation."""
    reward = np.array(list(rewards.values()))
    divisor = max(reward.std(ddof=1), floor) + 1e-6
    found = {}
    for key, turns in num_turns.items():
        line = np.full(turns + 1, np.nan)
        line[0], line[-1] = reward.mean(), rewards[key]
        for branch in branches:
            if branch.parent == key and branch.turn < turns:
                line[branch.turn] = np.mean(list(branch.rewards.values()))
        known = np.flatnonzero(~np.isnan(line))
        change = np.diff(line[known])
        found[key] = np.repeat(change, np.diff(known)) / divisor
    for branch in branches:
        value = np.mean(list(branch.rewards.values()))
        for key, own in branch.rewards.items():
            taken = np.arange(branch.num_turns[key]) >= branch.turn
            found[key] = taken * (own - value) / divisor
    return found


@pytest.mark.parametrize("seed", range(20))
def test_advantages_are_those_of_numpy_to_1e_12(seed: int) -> None:
    rng = random.Random(seed)
    rewards = {key: rng.choice([0.0, 1.0, rng.random()]) for key in range(8)}
    num_turns = {key: rng.randrange(1, 9) for key in rewards}
    branches = []
    for parent, turn in {(rng.randrange(8), rng.randrange(8)) for _ in range(12)}:
        keys = [100 + 10 * len(branches) + place for place in range(rng.randrange(1, 5))]
        found = BranchRewards(
            parent=parent,
            turn=turn,
            rewards={key: rng.random() for key in keys},
            num_turns={key: turn + rng.randrange(1, 4) for key in keys},
        )
        branches.append(found)
    unseen = {key: [f"{key}/{place}" for place in range(turns)] for key, turns in num_turns.items()}
    states = SharedStates(of_turns=unseen, least_visits=2, branches=branches)
    result = group_advantages(rewards, scale=True, floor=0.01, states=states)
    assert result is not None
    expected = by_numpy(rewards, num_turns, branches, 0.01)
    assert result.turns.keys() == expected.keys()
    for key, row in expected.items():
        assert np.abs(np.array(result.turns[key]) - row).max() <= 1e-12


def test_the_middle_of_what_changed_most_is_measured_while_desktop_seconds_last() -> None:
    rows = [
        (1.0, ["s", "a", "b", "c", "d"]),
        (0.0, ["s", "e", "f"]),
        (0.6, ["s", "g", "shared", "h"]),
        (0.6, ["s", "g", "shared", "i"]),
    ]
    group = lasting(group_of(rows), 4.0, 3.0, 2.0, 2.0)
    starts = chosen_starts([group], config())
    found = [(start.member.trajectory_id, start.turn, round(start.change, 3)) for start in starts]
    # 8 + 6 of 20 s; then one of the two that part late, whose value the turns before have settled.
    assert found == [(11, 1, -0.55), (10, 2, 0.45), (12, 3, 0.0)]
    wide = chosen_starts([group], config(branch_seconds=1000.0))
    assert [(one.member.trajectory_id, one.turn) for one in wide[2:]] == [(12, 3), (13, 3)]
    asked = starts[0].request(config(), policy_version=7)
    assert (asked.size, asked.purpose, asked.parent_id, asked.branch_turn) == (2, "branch", 11, 1)
    assert (asked.policy_version, asked.min_valid) == (7, 0)


def test_what_teaches_nothing_is_not_measured() -> None:
    flat = lasting(group_of([(1.0, ["s", "a", "b"]), (1.0, ["s", "c", "d"])]), 1.0, 1.0)
    assert chosen_starts([flat], config()) == []


def test_branched_turns_are_trained_on_with_the_logprobs_that_they_were_sampled_with(prepare) -> None:
    group = group_of([(1.0, ["s", "a", "b"]), (0.0, ["s", "c", "d"])])
    branch = branch_of(group, member=1, turn=1, rewards=[1.0, 0.0, 0.0, 1.0])
    (whole,) = with_branches([group], [branch])
    batch = prepare([whole], prompt=PROMPT, algorithm=BRANCHES)
    found = {
        sample.trajectory_id: [
            (round(value, 6), logprob)
            for value, logprob, bit in zip(
                sample.token_advantages, sample.behaviour_logprobs, sample.loss_mask, strict=True
            )
            if bit
        ]
        for sample in batch.samples
    }
    # The group is worth 0.5, and so is the state after the first turn of 11: that turn lost nothing.
    assert [value for value, _ in found[11]] == [0.0, 0.0, -0.5, -0.5, -0.5, -0.5]
    for place, reward in enumerate([1.0, 0.0, 0.0, 1.0]):
        member = branch.trajectories[place]
        own = [value for turn in member.turns[1:] for value in turn.completion.behaviour_logprobs]
        assert found[90 + place] == [(reward - 0.5, value) for value in own], "two turns of its own"
    assert (batch.metrics["branches/states"], batch.metrics["branches/continuations"]) == (1.0, 4.0)


def test_a_wrong_record_of_a_branch_leaves_it_and_its_value_alone(prepare) -> None:
    group = group_of([(1.0, ["s", "a", "b"]), (0.0, ["s", "c", "d"])])
    branch = branch_of(group, member=1, turn=1, rewards=[1.0, 0.0, 0.0])
    bad = branch.trajectories[0]
    completion = bad.turns[2].completion.model_copy(update={"token_ids": (1, 999_999)})
    turns = (*bad.turns[:2], bad.turns[2].model_copy(update={"completion": completion}))
    members = (bad.model_copy(update={"turns": turns}), *branch.trajectories[1:])
    (whole,) = with_branches([group], [branch.model_copy(update={"trajectories": members})])
    batch = prepare([whole], prompt=PROMPT, algorithm=BRANCHES)
    assert {10, 11, 91, 92} >= {sample.trajectory_id for sample in batch.samples}
    assert batch.metrics["dropped/out_of_vocabulary"] == 1.0
    assert batch.advantages[91] == 0.0, "compared with the two that are left"
