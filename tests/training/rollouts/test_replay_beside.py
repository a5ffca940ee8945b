"""Replay entries with a bounded advantage, imitated beside their group, and limited by family."""

from __future__ import annotations

import pytest

from testing.training.sample_values import make_group, make_task, make_trajectory, make_turn
from tests.training.rollouts.test_replay_injection import candidate, human, run
from training.contracts.coordinator import ReplayCandidate
from training.contracts.types import Group
from training.render.renderer import Renderer


@pytest.fixture
def sampled(toy_renderer: Renderer) -> ReplayCandidate:
    """With the very tokens of the policy."""
    turns = (make_turn(fingerprint=toy_renderer.fingerprint),)
    trajectory = make_trajectory(99, 1.0, replay_entry_id=9, turns=turns)
    return ReplayCandidate(entry_id=9, label="gold", policy_age=2, trajectory=trajectory)


@pytest.fixture
def imitated(sampled: ReplayCandidate) -> ReplayCandidate:
    """The same, of a policy without common weights."""
    action = {"action": "left_click", "coordinate": [500, 500]}
    turns = tuple(
        turn.model_copy(update={"action": action, "dialect_action": action})
        for turn in sampled.trajectory.turns
    )
    trajectory = sampled.trajectory.model_copy(update={"turns": turns})
    return sampled.model_copy(update={"policy_age": None, "trajectory": trajectory})


def families(**sizes: int) -> list[Group]:
    """Groups of four that failed, of each family that many."""
    names = [name for name, number in sizes.items() for _ in range(number)]
    tasks = [make_task(f"{name}-{place}", family=name) for place, name in enumerate(names)]
    return [make_group([0.0] * 4, group_id=place + 1, task=task) for place, task in enumerate(tasks)]


@pytest.mark.parametrize(
    ("share", "injected"), [(1.0, {"copy": 3, "form": 1}), (0.17, {"copy": 2}), (0.1, {"copy": 1})]
)
def test_a_family_takes_its_share_of_all_its_trajectories(share: float, injected: dict) -> None:
    groups = families(copy=3, form=1)
    entries = {
        group.task.task_id: candidate(
            number, trajectory=human(900 + number).model_copy(update={"task": group.task})
        )
        for number, group in enumerate(groups)
    }
    found = run(groups, list(entries.values()), max_share=1.0, max_family_share=share)[1]
    family_of = {group.group_id: group.task.family for group in groups}
    names = [family_of[one.group_id] for one in found]
    assert {name: names.count(name) for name in names} == injected


def test_beside_its_group_an_entry_replaces_no_one() -> None:
    group = make_group([0.0, 0.0])
    (same,), (injection,) = run([group], [candidate(5)], max_share=1.0, injection="likelihood")
    assert same is group
    assert (injection.replaced_trajectory_id, injection.as_likelihood, injection.policy_age) == (
        None,
        True,
        None,
    )
    assert (injection.beside.group_id, injection.beside.replay_entry_id) == (1, 5)


def test_other_entries_are_imitated_beside_groups_that_did_not_fail() -> None:
    groups = [
        make_group([1.0, 0.0], group_id=1),
        make_group([0.0, 0.0], group_id=2),
        make_group([1.0, 1.0], group_id=3),
    ]
    entries = [candidate(number) for number in range(5)]

    def beside(share: float) -> list[int]:
        found = run(groups, entries, trained=(1,), max_share=0, sft_share=share)[1]
        return [one.group_id for one in found if one.beside is not None]

    assert (beside(0.0), beside(0.17), beside(0.5)) == ([], [1], [1, 3])


def test_an_entry_beside_its_group_trains_it_alone(prepare, sampled: ReplayCandidate) -> None:
    replay = {"enabled": True, "injection": "likelihood", "likelihood_weight": 0.3}
    batch = prepare([make_group([0.0] * 4)], (sampled,), replay=replay)
    (only,) = batch.samples
    assert (only.trajectory_id, only.as_likelihood, only.likelihood_weight, only.advantage) == (
        99,
        True,
        0.3,
        0.0,
    )
    (use,) = batch.replay_uses(step=1, per_sequence={})
    assert (use.replaced_trajectory_id, use.as_likelihood, use.importance_ratio) == (None, True, None)
    assert 99 not in {update.trajectory_id for update in batch.member_updates({})}


@pytest.mark.parametrize("injection", ["recorded", "advantage", "likelihood"])
def test_beside_a_group_that_did_not_fail_an_entry_has_its_weight_however_others_enter(
    prepare, sampled: ReplayCandidate, injection: str
) -> None:
    replay = {"enabled": True, "injection": injection, "sft_share": 0.5, "likelihood_weight": 0.3}
    batch = prepare([make_group([1.0, 0.0, 0.0, 0.0])], (sampled,), replay=replay)
    (entry,) = [sample for sample in batch.samples if sample.replay_entry_id == 9]
    assert (entry.as_likelihood, entry.likelihood_weight) == (True, 0.3)


def test_a_void_turn_of_an_entry_is_never_imitated(prepare, sampled: ReplayCandidate) -> None:
    turns = sampled.trajectory.turns
    void = turns[0].model_copy(update={"index": 1, "parse_error": "no JSON"})
    trajectory = sampled.trajectory.model_copy(update={"turns": (*turns, void)})
    entry = sampled.model_copy(update={"trajectory": trajectory})
    batch = prepare([make_group([0.0] * 4)], (entry,), replay={"enabled": True, "injection": "likelihood"})
    assert sum(sample.num_loss_tokens for sample in batch.samples) == 2


@pytest.mark.parametrize(("most", "advantage"), [(0.0, 1.5), (1.0, 1.0), (2.0, 1.5)])
def test_an_entry_weighs_at_most_the_largest_advantage(
    prepare, sampled: ReplayCandidate, most: float, advantage: float
) -> None:
    batch = prepare([make_group([0.0] * 4)], (sampled,), replay={"enabled": True, "max_advantage": most})
    weights = {sample.trajectory_id: sample.advantage for sample in batch.samples}
    assert weights.pop(99) == pytest.approx(advantage, rel=1e-4)
    assert list(weights.values()) == pytest.approx([-0.5] * 3, rel=1e-4), "the members' stay"
    (use,) = batch.replay_uses(step=1, per_sequence={})
    assert use.advantage == pytest.approx(advantage, rel=1e-4)


@pytest.mark.parametrize(("injection", "weight"), [("recorded", 0.5), ("advantage", 1.2)])
def test_without_logprobs_the_bounded_advantage_is_the_weight(
    prepare, imitated: ReplayCandidate, injection: str, weight: float
) -> None:
    replay = {"enabled": True, "injection": injection, "max_advantage": 1.2}
    batch = prepare([make_group([0.0] * 4)], (imitated,), replay=replay)
    (entry,) = [sample for sample in batch.samples if sample.replay_entry_id == 9]
    assert (entry.as_likelihood, entry.likelihood_weight) == (True, weight)


def test_an_entry_below_its_group_is_not_unlearned(prepare, imitated: ReplayCandidate) -> None:
    trajectory = imitated.trajectory.model_copy(update={"reward": 0.1})
    members = make_group([0.4, 0.4, 0.0, 0.4])
    entry = imitated.model_copy(update={"trajectory": trajectory})
    batch = prepare([members], (entry,), replay={"enabled": True, "injection": "advantage"})
    (sample,) = [sample for sample in batch.samples if sample.replay_entry_id == 9]
    assert sample.advantage < 0
    assert sample.likelihood_weight == 0
