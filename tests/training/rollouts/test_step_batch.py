"""From groups to the batch of a step."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from testing.training.sample_values import make_group, make_trajectory, make_turn
from testing.training.tiny_model import SIZE, screenshot
from tests.training.conftest import toy_config
from tests.training.rollouts.conftest import VOCABULARY
from training.contracts.config import ConfigError
from training.contracts.coordinator import ReplayCandidate
from training.contracts.types import Group, Observation, TrajectoryStatus
from training.render.history_window import SeenTurn
from training.render.prompt_digest import prompt_digest
from training.render.renderer import Renderer
from training.rollouts.coordinator_client import CoordinatorRefused
from training.rollouts.step_batch import StepBatch
from training.rollouts.untrainable import Reason


def no_picture(sha: str) -> bytes:
    raise FileNotFoundError(f"frame {sha} is not in the folder")


def test_errored_members_neither_train_nor_shift_the_mean(prepare) -> None:
    batch = prepare([make_group([1.0, 0.0, None])])
    assert {sample.trajectory_id for sample in batch.samples} == {10, 11}
    assert sum(batch.advantages.values()) == pytest.approx(0)
    assert batch.metrics["rollout/errored_rate"] == pytest.approx(1 / 3)


def test_a_group_with_one_valid_member_is_dropped_and_counted(prepare) -> None:
    batch = prepare([make_group([1.0, None]), make_group([1.0, 0.0], group_id=2)])
    assert {sample.group_id for sample in batch.samples} == {2}
    assert batch.metrics["rollout/dropped_groups"] == 1


def test_equal_rewards_stay_out_of_the_loss_but_are_reported(prepare) -> None:
    groups = [make_group([0.0, 0.0]), make_group([1.0, 0.0], group_id=2)]
    batch = prepare(groups)
    assert {sample.group_id for sample in batch.samples} == {2}
    assert batch.metrics["rollout/zero_variance_fraction"] == 0.5
    assert batch.advantages[10] == 0
    kept = prepare(groups, algorithm={"skip_zero_variance": False})
    assert {sample.group_id for sample in kept.samples} == {1, 2}


@pytest.mark.parametrize("control", ["shuffled", "random"])
def test_a_control_changes_advantages_and_no_metric_of_rewards(prepare, control: str) -> None:
    groups = [make_group([1.0, 0.0, 0.0, 0.0], group_id=number) for number in range(1, 33)]
    plain, batch = prepare(groups), prepare(groups, algorithm={"reward_control": control})
    assert batch.metrics["rollout/reward_mean"] == plain.metrics["rollout/reward_mean"] == 0.25
    assert batch.metrics["rollout/reward_std_in_group"] == plain.metrics["rollout/reward_std_in_group"]
    winners = [10 * number for number in range(1, 33)]
    assert all(plain.advantages[winner] > 1 for winner in winners)
    assert sum(batch.advantages[winner] for winner in winners) / 32 < 0.7
    trained = {sample.trajectory_id: sample.advantage for sample in batch.samples}
    assert all(batch.advantages[key] == advantage for key, advantage in trained.items())


@pytest.mark.parametrize(
    "sections", [{"replay": {"enabled": True}}, {"algorithm": {"success_likelihood": 0.1}}]
)
def test_a_control_refuses_what_would_show_true_successes(toy_model: Path, sections: dict) -> None:
    algorithm = {"reward_control": "random"} | sections.pop("algorithm", {})
    with pytest.raises(ConfigError, match="true successes"):
        toy_config(toy_model, algorithm=algorithm, **sections)


def test_an_injected_success_gives_a_failed_group_its_advantages_again(
    prepare, toy_renderer: Renderer
) -> None:
    turns = (make_turn(fingerprint=toy_renderer.fingerprint),)
    trajectory = make_trajectory(99, 1.0, replay_entry_id=9, turns=turns)
    entry = ReplayCandidate(entry_id=9, label="gold", policy_age=2, trajectory=trajectory)
    batch = prepare([make_group([0.0] * 4)], (entry,), replay={"enabled": True})
    replayed = [sample for sample in batch.samples if sample.replay_entry_id == 9]
    assert [sample.advantage for sample in replayed] == [pytest.approx(1.5, rel=1e-4)]
    assert len(batch.samples) == 4
    assert not replayed[0].as_likelihood
    assert batch.metrics["rollout/success"] == 0, "metrics describe what the desktops returned"
    assert batch.metrics["replay/failed_groups"] == batch.metrics["replay/injected"] == 1
    nan = float("nan")
    (unknown,) = batch.replay_uses(step=5, per_sequence={99: (nan, nan)})
    assert unknown.importance_ratio is None, "of a skipped step"
    key = next(key for key in batch.advantages if key != 99)
    gaps = {one.trajectory_id: one.policy_logprob_gap for one in batch.member_updates({key: (nan, nan)})}
    assert gaps[key] is None
    (known,) = [one for one in batch.member_updates({key: (0.8, 0.1)}) if one.trajectory_id == key]
    assert known.policy_logprob_gap == 0.1
    (use,) = batch.replay_uses(step=5, per_sequence={99: (0.8, 0.1)})
    assert (use.entry_id, use.importance_ratio, use.policy_age) == (9, 0.8, 2)
    assert 99 not in {update.trajectory_id for update in batch.member_updates({})}


def test_samples_of_an_older_policy_are_dropped_beyond_the_bound(prepare) -> None:
    batch = prepare([make_group([1.0, 0.0])], policy_version=5)
    assert batch.samples == []
    assert batch.metrics["async/dropped"] == 2
    later = prepare([make_group([1.0, 0.0])], policy_version=5, algorithm={"max_staleness": 2})
    assert len(later.samples) == 2
    assert later.metrics["async/dropped"] == 0
    assert (later.metrics["async/staleness_mean"], later.metrics["async/staleness_max"]) == (2, 2)


def test_a_stale_success_pushes_no_sibling_down(prepare) -> None:
    group = make_group([1.0, 0.0, 0.0])
    young = [make_turn(completion=make_turn().completion.model_copy(update={"policy_version": 5}))]
    members = [one.model_copy(update={"turns": tuple(young)}) for one in group.trajectories[1:]]
    group = group.model_copy(update={"trajectories": (group.trajectories[0], *members)})
    for masks in (False, True):
        batch = prepare([group], policy_version=5, algorithm={"mask_stale_tokens": masks})
        assert batch.samples == [], "what is left of the group is flat"
        assert batch.advantages == {11: 0.0, 12: 0.0}
        assert batch.metrics["async/dropped"] == 1


def test_nearly_equal_rewards_do_not_train_at_full_strength(prepare) -> None:
    crumbs = prepare([make_group([1.0, 1.0, 1.0, 1.00001])])
    assert max(map(abs, crumbs.advantages.values())) < 0.001
    assert len(crumbs.samples) == 4
    success = prepare([make_group([1.0, 0.0, 0.0, 0.0])])
    assert success.advantages[10] == pytest.approx(1.5, rel=1e-4), "untouched where rewards differ"
    full = prepare([make_group([1.0, 1.0, 1.0, 1.00001])], algorithm={"least_deviation": 0})
    assert full.advantages[13] == pytest.approx(1.25, rel=1e-2)


def test_a_replay_entry_is_never_too_old(prepare, toy_renderer: Renderer) -> None:
    turns = (make_turn(fingerprint=toy_renderer.fingerprint),)
    old = turns[0].completion.model_copy(update={"policy_version": 0})
    turns = (turns[0].model_copy(update={"completion": old}),)
    trajectory = make_trajectory(99, 1.0, replay_entry_id=9, turns=turns)
    entry = ReplayCandidate(entry_id=9, label="gold", policy_age=5, trajectory=trajectory)
    group = make_group([0.0] * 4)
    for mask_stale_tokens in (False, True):
        batch = prepare(
            [group],
            (entry,),
            policy_version=3,
            replay={"enabled": True},
            algorithm={"max_staleness": 0, "mask_stale_tokens": mask_stale_tokens, "success_likelihood": 0.5},
        )
        (replayed,) = [sample for sample in batch.samples if sample.replay_entry_id == 9]
        assert replayed.num_loss_tokens == 2
        assert (replayed.as_likelihood, replayed.imitation_weight) == (False, 0.0), "no success of its own"
        assert [use.entry_id for use in batch.injections] == [9]
        assert len(batch.samples) == 4


def test_a_partly_stale_trajectory_leaves_whole_or_keeps_its_whole_weight(prepare) -> None:
    """Four sequences of two tokens each, of which the first three are too old."""
    turns = []
    for index, version in enumerate((3, 3, 3, 5)):
        completion = make_turn().completion.model_copy(update={"policy_version": version})
        seen = Observation(sha256=f"{index:064x}", width=128, height=96, text="go")
        turns.append(make_turn(index, completion=completion, observation=seen))
    group = make_group([1.0, 0.0, 0.5])
    older = group.trajectories[0].model_copy(update={"turns": tuple(turns)})
    fresh = (turns[3].model_copy(update={"index": 0}),)
    newer = [member.model_copy(update={"turns": fresh}) for member in group.trajectories[1:]]
    group = group.model_copy(update={"trajectories": (older, *newer)})
    window = {"history": "window", "keep_first_images": 0, "keep_last_images": 1}
    algorithm = {"aggregation": "trajectory_mean"}
    everything = prepare([group], policy_version=3, prompt=window, algorithm=algorithm)
    assert [(s.trajectory_id, s.trajectory_tokens) for s in everything.samples] == [
        *[(10, 8)] * 4,
        (11, 0),
        (12, 0),
    ]
    without = prepare([group], policy_version=5, prompt=window, algorithm=algorithm)
    assert {sample.trajectory_id for sample in without.samples} == {11, 12}
    assert without.metrics["async/dropped"] == 1
    assert without.metrics["async/staleness_max"] == 2
    half = 0.5**0.5
    assert without.advantages == pytest.approx({11: -half, 12: half}, rel=1e-3), "it is not compared with"
    algorithm["mask_stale_tokens"] = True
    masked = prepare([group], policy_version=5, prompt=window, algorithm=algorithm)
    (kept,) = [sample for sample in masked.samples if sample.trajectory_id == 10]
    assert (kept.num_loss_tokens, kept.trajectory_tokens) == (2, 0), "its two tokens are its whole weight"


def test_a_trajectory_with_an_uncompleted_turn_counts_but_is_never_imitated(prepare) -> None:
    group = make_group([1.0, 0.0, 0.0])
    cut = group.trajectories[0].model_copy(update={"turns": (make_turn(), make_turn(1, completion=None))})
    batch = prepare([group.model_copy(update={"trajectories": (cut, *group.trajectories[1:])})])
    assert {sample.trajectory_id for sample in batch.samples} == {11, 12}
    assert set(batch.advantages) == {10, 11, 12}
    assert batch.metrics["rollout/unrecorded"] == 1


def test_other_words_of_the_same_length_before_a_completion_are_another_context(
    prepare, toy_renderer: Renderer
) -> None:
    group = make_group([1.0, 0.0, 1.0])
    members = []
    for place, words in enumerate(("q", "q", "z")):
        before = toy_renderer.context([SeenTurn(text=words)]).token_ids
        recorded = {"num_prompt_tokens": len(before), "prompt_digest": prompt_digest(before)}
        completion = make_turn().completion.model_copy(update=recorded)
        shown = make_turn().observation.model_copy(update={"text": "q"})
        turns = (make_turn(completion=completion, observation=shown),)
        members.append(group.trajectories[place].model_copy(update={"turns": turns}))
    assert len({one.turns[0].completion.num_prompt_tokens for one in members}) == 1
    batch = prepare([group.model_copy(update={"trajectories": tuple(members)})])
    assert {sample.trajectory_id for sample in batch.samples} == {10, 11}
    assert batch.metrics["dropped/other_context"] == 1


def broken_member(reason: str) -> tuple:
    """A member's only turn, made so that it cannot be trained on for `reason`."""
    changes = {
        "not_finite": {"behaviour_logprobs": (-0.5, float("nan"))},
        "out_of_vocabulary": {"token_ids": (7, VOCABULARY)},
        "count_mismatch": {"behaviour_logprobs": (-0.5,)},
        "other_context": {"num_prompt_tokens": 3},
        "lost_screenshot": {},
        "too_long": {"token_ids": (7,) * 5000, "behaviour_logprobs": (-0.5,) * 5000},
    }[reason]
    turn = make_turn()
    changed: dict = {"completion": turn.completion.model_copy(update=changes)}
    if reason == "lost_screenshot":
        changed["observation"] = turn.observation.model_copy(update={"sha256": "f" * 64})
    return (turn.model_copy(update=changed),)


@pytest.mark.parametrize("damage", ["gone", "refused", "cut off", "another picture"])
def test_a_screenshot_that_is_not_what_was_seen_is_never_trained_on(
    prepare, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    pngs = {hashlib.sha256(png).hexdigest(): png for png in (screenshot(1), screenshot(2), screenshot(3))}
    group = make_group([1.0, 0.0, 1.0])
    members = []
    for member, sha in zip(group.trajectories, pngs, strict=True):
        seen = Observation(sha256=sha, width=SIZE[0], height=SIZE[1], text="go")
        members.append(member.model_copy(update={"turns": (make_turn(observation=seen),)}))
    bad = list(pngs)[2]

    def png(sha: str) -> bytes:
        if sha == bad and damage == "refused":
            raise CoordinatorRefused(404, "GET /frames: 404")
        if sha == bad and damage == "gone":
            return no_picture(sha)
        if sha == bad:
            return pngs[bad][:-20] if damage == "cut off" else screenshot(4)
        return pngs[sha]

    batch = prepare([group.model_copy(update={"trajectories": tuple(members)})], png=png)
    assert {sample.trajectory_id for sample in batch.samples} == {10, 11}
    assert batch.metrics["dropped/lost_screenshot"] == 1
    assert f"trajectory 12 is not trained on (lost_screenshot): screenshot {bad[:12]}" in caplog.text


@pytest.mark.parametrize("reason", list(Reason))
def test_an_untrainable_member_leaves_its_group_to_the_others(prepare, reason: Reason) -> None:
    group = make_group([1.0, 0.0, 1.0])
    bad = group.trajectories[2].model_copy(update={"turns": broken_member(reason)})
    group = group.model_copy(update={"trajectories": (*group.trajectories[:2], bad)})
    batch = prepare([group], png=no_picture)
    assert {sample.trajectory_id: sample.advantage for sample in batch.samples} == {
        10: pytest.approx(0.5**0.5, abs=1e-5),
        11: pytest.approx(-(0.5**0.5), abs=1e-5),
    }, "as in a group of the two"
    assert set(batch.advantages) == {10, 11}
    assert {name: n for name, n in batch.metrics.items() if name.startswith("dropped/") and n} == {
        f"dropped/{reason}": 1.0
    }
    assert batch.metrics["rollout/num_trajectories"] == 3, "metrics describe what the desktops returned"


def test_a_group_with_one_trainable_member_is_left_out(prepare) -> None:
    group = make_group([1.0, 0.0])
    bad = group.trajectories[0].model_copy(update={"turns": broken_member("too_long")})
    batch = prepare([group.model_copy(update={"trajectories": (bad, group.trajectories[1])})])
    assert (batch.samples, batch.advantages) == ([], {})


def test_an_untrainable_entry_without_actions_is_never_injected_and_reported(prepare) -> None:
    trajectory = make_trajectory(99, 1.0, replay_entry_id=9, turns=broken_member("out_of_vocabulary"))
    entry = ReplayCandidate(entry_id=9, label="gold", trajectory=trajectory)
    batch = prepare([make_group([0.0] * 4)], (entry,), replay={"enabled": True})
    assert batch.injections == []
    assert batch.metrics["replay/skipped"] == 1
    assert [(skip.entry_id, skip.reason) for skip in batch.skips] == [(9, "no_action")]


def test_metrics_count_turns_errors_and_families(prepare) -> None:
    broken = make_turn(parse_error="no action")
    group = make_group([1.0, 0.0])
    members = (
        group.trajectories[0],
        group.trajectories[1].model_copy(update={"turns": (broken, broken, broken)}),
    )
    batch = prepare([group.model_copy(update={"trajectories": members})])
    assert batch.metrics["rollout/parse_error_rate"] == 0.75
    assert batch.metrics["rollout/turns_mean"] == 2
    assert batch.metrics["success/menu"] == 0.5
    assert batch.metrics["reward/task_score.v1"] == 0.5


def test_stale_tokens_are_masked_one_by_one_when_the_config_says_so(prepare) -> None:
    group = make_group([1.0, 0.0])
    newer = make_turn(1)
    newer = newer.model_copy(update={"completion": newer.completion.model_copy(update={"policy_version": 5})})
    long = group.trajectories[0].model_copy(update={"turns": (make_turn(), newer)})
    young = group.trajectories[1].model_copy(update={"turns": (newer.model_copy(update={"index": 0}),)})
    group = group.model_copy(update={"trajectories": (long, young)})
    batch = prepare([group], policy_version=5, algorithm={"mask_stale_tokens": True})
    sample, _ = batch.samples
    kept = {v for v, bit in zip(sample.policy_versions, sample.loss_mask, strict=True) if bit}
    assert kept == {5}, "the turn of the same policy stays, the older one is only context"
    assert batch.metrics["async/masked_tokens"] == 2


def test_discounted_turns_and_last_turns_reach_the_tokens(prepare) -> None:
    group = make_group([1.0, 0.0])
    long = group.trajectories[0].model_copy(update={"turns": (make_turn(), make_turn(1), make_turn(2))})
    group = group.model_copy(update={"trajectories": (long, group.trajectories[1])})
    batch = prepare([group], algorithm={"turn_discount": 0.5, "train_last_turns": 2})
    first = next(sample for sample in batch.samples if sample.trajectory_id == 10)
    on = [a for a, bit in zip(first.token_advantages, first.loss_mask, strict=True) if bit]
    assert len(on) == 4, "two turns of two tokens"
    assert on[0] == on[1] < on[2] == on[3]


def test_overlong_masking_keeps_the_reward_and_leaves_the_tokens_out(prepare) -> None:
    group = make_group([1.0, 0.0, 0.0])
    cut = group.trajectories[1].model_copy(update={"status": TrajectoryStatus.TRUNCATED})
    group = group.model_copy(update={"trajectories": (group.trajectories[0], cut, group.trajectories[2])})
    usual, masked = prepare([group]), prepare([group], algorithm={"mask_truncated": True})
    assert {sample.trajectory_id for sample in usual.samples} == {10, 11, 12}
    assert {sample.trajectory_id for sample in masked.samples} == {10, 12}
    assert masked.advantages == usual.advantages, "it counts in the group's mean"


def babbling_group() -> Group:
    """One ends what it solved, one solves and writes a void turn of three tokens, one fails and ends."""
    group = make_group([1.0, 1.0, 0.0])
    void = make_turn(1, (4, 5, 6), parse_error="no action")
    babbles = group.trajectories[1].model_copy(
        update={"turns": (make_turn(), void), "status": TrajectoryStatus.TRUNCATED}
    )
    return group.model_copy(update={"trajectories": (group.trajectories[0], babbles, group.trajectories[2])})


def advantages_by_token(batch: StepBatch) -> dict[int, list[float]]:
    """Trajectory -> the advantage of each token with a loss."""
    return {
        sample.trajectory_id: [
            value
            for value, bit in zip(
                sample.token_advantages or [sample.advantage] * len(sample.token_ids),
                sample.loss_mask,
                strict=True,
            )
            if bit
        ]
        for sample in batch.samples
    }


def test_a_void_turn_has_its_trajectorys_advantage_only_where_it_is_kept(prepare) -> None:
    good, bad = pytest.approx(0.577, abs=1e-3), pytest.approx(-1.155, abs=1e-3)
    kept = {10: [good] * 2, 11: [good] * 5, 12: [bad] * 2}
    expected = {
        "keep": kept,
        "no_credit": kept | {11: [good] * 2},
        "mask": kept | {11: [good] * 2},
        "negative": kept | {11: [good] * 2 + [-0.5] * 3},
        "mask_trajectory": {10: kept[10], 12: kept[12]},
    }
    for mode, tokens in expected.items():
        batch = prepare([babbling_group()], algorithm={"void_turns": mode, "void_turn_penalty": 0.5})
        assert advantages_by_token(batch) == tokens, mode
        assert set(batch.advantages) == {10, 11, 12}, "the group's mean counts all of them"
    assert advantages_by_token(prepare([babbling_group()])) == expected["no_credit"], "the default"


def test_a_void_turn_of_a_bad_trajectory_is_punished_unless_it_is_masked(prepare) -> None:
    group = babbling_group()
    rewards = {10: 1.0, 11: 0.0, 12: 1.0}
    members = [one.model_copy(update={"reward": rewards[one.trajectory_id]}) for one in group.trajectories]
    bad = [pytest.approx(-1.155, abs=1e-3)]
    for mode, tokens in (("keep", 5), ("no_credit", 5), ("negative", 5), ("mask", 2)):
        batch = prepare(
            [group.model_copy(update={"trajectories": tuple(members)})],
            algorithm={"void_turns": mode, "void_turn_penalty": 0.5},
        )
        assert advantages_by_token(batch)[11] == bad * tokens, mode


def test_void_turns_of_equal_rewards_teach_only_where_they_have_an_advantage_of_their_own(prepare) -> None:
    group = babbling_group()
    members = tuple(one.model_copy(update={"reward": 1.0}) for one in group.trajectories)
    flat = group.model_copy(update={"trajectories": members})
    batch = prepare([flat], algorithm={"void_turns": "negative"})
    assert advantages_by_token(batch) == {11: [-1.0] * 3}, "the other turns stay out of the loss"
    for mode in ("keep", "no_credit", "mask", "mask_trajectory"):
        assert prepare([flat], algorithm={"void_turns": mode}).samples == []


def test_void_turns_are_never_imitated(prepare) -> None:
    group = babbling_group()
    ended = [one.model_copy(update={"status": TrajectoryStatus.TERMINATED}) for one in group.trajectories]
    group = group.model_copy(update={"trajectories": tuple(ended)})
    batch = prepare([group], algorithm={"name": "rejection_fine_tuning"})
    assert {sample.trajectory_id: sample.num_loss_tokens for sample in batch.samples} == {10: 2, 11: 2}


@pytest.mark.parametrize(
    "algorithm",
    [
        {"name": "gspo"},
        {"name": "rejection_fine_tuning"},
        {"success_likelihood": 0.1},
    ],
)
def test_an_advantage_of_single_turns_is_refused_where_nothing_could_use_it(prepare, algorithm: dict) -> None:
    with pytest.raises(ConfigError, match="algorithm.void_turns: .*set no_credit"):
        prepare([], algorithm=algorithm | {"void_turns": "negative"})


def test_only_own_successes_are_imitated_beside_their_gradient(prepare) -> None:
    batch = prepare([make_group([1.0, 0.0])], algorithm={"success_likelihood": 0.3})
    assert {sample.trajectory_id: sample.imitation_weight for sample in batch.samples} == {10: 0.3, 11: 0.0}


@pytest.mark.parametrize("algorithm", [{"name": "rejection_fine_tuning"}, {"success_likelihood": 0.3}])
def test_what_a_limit_ended_is_never_imitated(prepare, algorithm: dict) -> None:
    """A policy that reaches the state and goes on would learn never to stop."""
    batch = prepare([babbling_group()], algorithm=algorithm)
    assert [one.trajectory_id for one in batch.samples if one.as_likelihood or one.imitation_weight] == [10]


def test_rejection_fine_tuning_keeps_own_full_scores_alone_flat_groups_too(prepare) -> None:
    groups = [
        make_group([1.0, 0.0, 0.5]),
        make_group([1.0, 1.0], group_id=2),
        make_group([0.0] * 2, group_id=3),
    ]
    batch = prepare(groups, algorithm={"name": "rejection_fine_tuning"})
    assert [sample.trajectory_id for sample in batch.samples] == [10, 20, 21]
    assert all(sample.as_likelihood and sample.likelihood_weight == 1 for sample in batch.samples)
    assert batch.metrics["rollout/num_trajectories"] == 7, "as many were sampled as by any other algorithm"
