"""Replay injection: who is replaced by whom, how often, and how it is reported."""

from __future__ import annotations

import pytest

from testing.training.sample_values import make_group, make_task, make_trajectory, make_turn
from training.contracts.config import ReplayConfig
from training.contracts.coordinator import ReplayCandidate
from training.contracts.outcome import SuccessRule
from training.contracts.types import Source, Trajectory, TrajectoryStatus
from training.rollouts.replay_injection import Injection, ReplayState, has_failed, inject

CONFIG = ReplayConfig(enabled=True)


def candidate(entry_id: int = 1, *, label: str = "accepted", **changes: object) -> ReplayCandidate:
    values = {
        "policy_age": 6,
        "trajectory": make_trajectory(900 + entry_id, 1.0, replay_entry_id=entry_id, replay_label=label),
    }
    return ReplayCandidate(entry_id=entry_id, label=label, **(values | changes))


def human(number: int = 950) -> Trajectory:
    return make_trajectory(number, 1.0, source=Source.HUMAN, turns=(make_turn(completion=None),))


def run(
    groups: list,
    entries: list,
    state: ReplayState | None = None,
    trained: tuple[int, ...] = (),
    **changes: object,
):
    return inject(
        groups,
        lambda _: entries,
        lambda entry: entry,
        state or ReplayState(),
        CONFIG.model_copy(update=changes),
        rule=SuccessRule.ENDED,
        trained_groups=trained,
    )


@pytest.mark.parametrize(
    ("rewards", "failed"),
    [
        ([0.0, 0.0], True),
        ([0.0, 0.49], True),
        ([0.0, 0.5], False),
        ([0.0, None], False),  # one valid member: the group is dropped anyway
        ([None, None], False),
    ],
)
def test_a_group_has_failed_when_every_score_is_below_the_threshold(rewards: list, failed: bool) -> None:
    assert has_failed(make_group(rewards), 0.5, SuccessRule.ENDED) is failed


def test_what_a_limit_ended_counts_where_the_state_is_paid() -> None:
    group = make_group([1.0, 1.0])
    members = [one.model_copy(update={"status": TrajectoryStatus.TRUNCATED}) for one in group.trajectories]
    group = group.model_copy(update={"trajectories": tuple(members)})
    assert has_failed(group, 0.5, SuccessRule.ENDED)
    assert not has_failed(group, 0.5, SuccessRule.STATE)


def test_one_worst_member_is_replaced_and_the_group_keeps_its_size() -> None:
    group = make_group([0.2, 0.0, 0.1, None], group_id=7)
    (changed,), (injection,) = run([group], [candidate(5, label="gold")], max_share=1.0)
    assert len(changed.trajectories) == 4
    assert [member.trajectory_id for member in changed.trajectories] == [70, 905, 72, 73]
    newcomer = changed.trajectories[1]
    assert (newcomer.group_id, newcomer.replay_entry_id, newcomer.replay_label) == (7, 5, "gold")
    assert injection == Injection(
        entry_id=5,
        group_id=7,
        trajectory_id=905,
        replaced_trajectory_id=71,
        policy_age=6,
        as_likelihood=False,
    )


def test_of_equally_bad_members_the_latest_is_replaced() -> None:
    _, (injection,) = run([make_group([0.1, 0.0, 0.0], group_id=7)], [candidate()], max_share=1.0)
    assert injection.replaced_trajectory_id == 72


def test_a_group_with_a_success_is_left_alone() -> None:
    group = make_group([0.0, 1.0])
    assert run([group], [candidate()], max_share=1.0) == ([group], [])


def test_an_entry_nobody_sampled_enters_as_likelihood_without_age_or_ratio() -> None:
    entry = candidate(trajectory=human(), policy_age=None)
    _, (injection,) = run([make_group([0.0, 0.0])], [entry], max_share=1.0)
    assert injection.as_likelihood
    report = injection.report(step=3, advantage=0.7, importance_ratio=1.4)
    assert (report.policy_age, report.importance_ratio, report.advantage) == (None, None, 0.7)


@pytest.mark.parametrize(
    ("trained", "share", "injected"),
    [
        # Four groups of four failed; a group with an injection is trained on, a flat one is not.
        ((), 0.25, 4),  # each is a quarter replay
        ((), 0.24, 0),  # one of the four trajectories that are trained on would be more
        ((5,), 0.13, 1),  # one of 4 + 4; two of 12 would be 17 %
        ((5,), 0.17, 2),
        ((1, 2, 3, 4, 5), 0.13, 2),  # unequal rewards: all 20 are trained on in any case
    ],
)
def test_the_share_is_of_what_is_trained_on(trained: tuple[int, ...], share: float, injected: int) -> None:
    failed = [make_group([0.0] * 4, group_id=number) for number in range(1, 5)]
    solved = make_group([1.0, 0.0, 0.0, 0.0], group_id=5)
    entries = [candidate(number) for number in range(1, 5)]
    found, injections = run([*failed, solved], entries, trained=trained, max_share=share)
    assert len(injections) == injected
    changed = {one.group_id for one in injections}
    in_loss = [
        member for group in found if group.group_id in changed | set(trained) for member in group.scored()
    ]
    assert len(injections) <= share * len(in_loss)


def test_an_entry_enters_a_batch_once() -> None:
    groups = [make_group([0.0] * 4, group_id=number) for number in (1, 2)]
    assert len(run(groups, [candidate()], max_share=1.0)[1]) == 1


def test_an_entry_is_used_at_most_so_often_over_all_steps() -> None:
    state = ReplayState()
    used = [len(run([make_group([0.0] * 8)], [candidate()], state, max_uses=2)[1]) for _ in range(4)]
    assert used == [1, 1, 0, 0]
    assert ReplayState.from_json(state.to_json()).uses == {1: 2}


def test_gold_comes_first_and_a_used_entry_steps_behind_its_peers() -> None:
    state = ReplayState()
    entries = [candidate(1), candidate(2, label="gold"), candidate(3, label="gold")]
    order = [run([make_group([0.0] * 8)], entries, state)[1][0].entry_id for _ in range(3)]
    assert order == [2, 3, 2]
    assert run([make_group([0.0] * 8)], entries, ReplayState(), gold_first=False)[1][0].entry_id == 1


@pytest.mark.parametrize(
    "entry",
    [
        candidate(trajectory=make_trajectory(901, 0.3)),  # re-scored: no success any more
        candidate(trajectory=make_trajectory(901, 1.0, task=make_task(split="heldout"))),
        candidate(trajectory=make_trajectory(901, 1.0, task=make_task("menu-2"))),
        candidate(trajectory=make_trajectory(901, 1.0, turns=())),
    ],
    ids=["no success", "held out", "other task", "no turns"],
)
def test_unusable_entries_are_not_injected(entry: ReplayCandidate) -> None:
    assert run([make_group([0.0] * 8)], [entry])[1] == []


def test_an_entry_of_exactly_the_threshold_is_a_success() -> None:
    entry = candidate(trajectory=make_trajectory(901, 0.5))
    assert len(run([make_group([0.0] * 8)], [entry], threshold=0.5)[1]) == 1
    assert run([make_group([0.0] * 8)], [entry], threshold=0.51)[1] == []


def test_an_entry_that_is_turned_down_makes_room_for_the_next() -> None:
    entries = [candidate(1, label="gold"), candidate(2)]
    config = CONFIG.model_copy(update={"max_share": 1.0})
    asked = []

    def admit(entry: ReplayCandidate) -> ReplayCandidate | None:
        asked.append(entry.entry_id)
        return entry if entry.entry_id == 2 else None

    state = ReplayState()
    _, (injection,) = inject(
        [make_group([0.0] * 8)],
        lambda _: entries,
        admit,
        state,
        config,
        rule=SuccessRule.ENDED,
        trained_groups=(),
    )
    assert (asked, injection.entry_id, state.uses) == ([1, 2], 2, {2: 1})
