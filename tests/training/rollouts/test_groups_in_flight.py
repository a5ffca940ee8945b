"""No group is asked for that could be older than the bound when it is trained on."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from testing.training.sample_values import make_group, make_task
from training.contracts.config import parse_config
from training.contracts.coordinator import FinishedGroups, SampleGroup
from training.contracts.trainer_state import ExperimentState
from training.contracts.types import Control, Group
from training.distributed.interrupts import TermSignal
from training.rollouts.group_collector import GroupCollector, PendingGroups, WeightsLost
from training.rollouts.groups_in_flight import GroupsInFlight
from training.rollouts.task_order import TaskOrder


class FakeRollouts:
    """Every group is there at once; remembers what was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int, list[str]]] = []
        """(step, policy_version, tasks)"""
        self.cancelled: list[PendingGroups] = []
        self.is_flat = False
        self.loses_weights_at: int | None = None
        """Number of the call of `wait`, from 1, at which the engine has been started again."""
        self.num_waits = 0

    def ask(self, tasks: list[Any], request: Any) -> PendingGroups:
        self.asked.append((request.step, request.policy_version, [task.task_id for task in tasks]))
        return PendingGroups(tasks=list(tasks), request=request)

    def wait(self, ticket: PendingGroups) -> list[Group]:
        self.num_waits += 1
        if self.num_waits == self.loses_weights_at:
            raise WeightsLost
        rewards = [1.0, 1.0] if self.is_flat else [0.0, 1.0]
        return [make_group(rewards, task=task) for task in ticket.tasks]

    def cancel(self, ticket: PendingGroups) -> None:
        self.cancelled.append(ticket)


def make_ahead(staleness: int, *, num_steps: int = 6, extra: int = 0, cursor: int = 0) -> GroupsInFlight:
    algorithm = {
        "max_staleness": staleness,
        "groups_per_step": 2,
        "group_size": 2,
        "num_steps": num_steps,
        "max_extra_groups": extra,
    }
    return GroupsInFlight(
        collector=FakeRollouts(),  # type: ignore[arg-type]
        order=TaskOrder([make_task(f"t{number}") for number in range(40)], seed=0),
        config=parse_config({"model": {"path": str(Path.cwd())}, "algorithm": algorithm}),
        state=ExperimentState(task_cursor=cursor),
    )


def walk(in_flight: GroupsInFlight, steps: int) -> list[list[str]]:
    """Tasks of each step; every step raises the version."""
    used = []
    for _ in range(steps):
        used.append([group.task.task_id for group in in_flight.next_groups()])
        in_flight.state.grpo_step += 1
        in_flight.state.policy_version += 1
    return used


@pytest.mark.parametrize("staleness", [0, 1, 2, 4])
def test_every_group_is_young_enough_when_it_is_trained_on(staleness: int) -> None:
    in_flight = make_ahead(staleness)
    walk(in_flight, 6)
    asked = in_flight.collector.asked  # type: ignore[attr-defined]
    assert [step for step, _, _ in asked] == list(range(1, 7)), "each step once, none beyond the last"
    assert all(version == max(0, step - 1 - staleness) for step, version, _ in asked)


@pytest.mark.parametrize("staleness", [0, 3])
def test_tasks_come_in_their_order_whatever_the_bound(staleness: int) -> None:
    in_flight = make_ahead(staleness)
    expected = [task.task_id for task in in_flight.order.take(0, 12)]
    assert [task for tasks in walk(in_flight, 6) for task in tasks] == expected


@pytest.mark.parametrize("staleness", [0, 1, 3])
def test_a_resume_goes_on_where_the_last_finished_step_stopped(staleness: int) -> None:
    in_flight = make_ahead(staleness)
    first = walk(in_flight, 2)
    resumed = make_ahead(staleness, num_steps=4, cursor=in_flight.state.task_cursor)
    resumed.state.grpo_step, resumed.state.policy_version = 2, 2
    second = walk(resumed, 2)
    expected = [task.task_id for task in in_flight.order.take(0, 8)]
    assert [task for tasks in first + second for task in tasks] == expected


def test_flat_groups_are_replaced_by_tasks_that_nobody_has_asked_for() -> None:
    in_flight = make_ahead(2, extra=1)
    in_flight.collector.is_flat = True  # type: ignore[attr-defined]
    (tasks,) = walk(in_flight, 1)
    order = [task.task_id for task in in_flight.order.take(0, 7)]
    assert tasks == [*order[:2], order[6]], "positions 2 to 5 belong to the next two steps"
    assert in_flight.state.task_cursor == 2, "a resume must not lose those"


def test_cancelled_tickets_come_again() -> None:
    in_flight = make_ahead(2)
    walk(in_flight, 1)
    in_flight.cancel()
    assert len(in_flight.collector.cancelled) == 2  # type: ignore[attr-defined]
    assert walk(in_flight, 1) == [[task.task_id for task in in_flight.order.take(2, 2)]]


def test_nothing_is_lost_when_the_engine_needs_its_weights_in_between() -> None:
    in_flight = make_ahead(1)
    in_flight.collector.loses_weights_at = 1  # type: ignore[attr-defined]
    with pytest.raises(WeightsLost):
        in_flight.next_groups()
    assert [task for tasks in walk(in_flight, 2) for task in tasks] == [
        t.task_id for t in in_flight.order.take(0, 4)
    ]


@pytest.mark.parametrize("lost_at", [2, 3])
def test_extra_groups_are_asked_for_once_when_the_engine_needs_its_weights(lost_at: int) -> None:
    """Both steps are flat; a restart while their extra groups are awaited skips no task."""
    in_flight = make_ahead(0, extra=3)
    rollouts = in_flight.collector
    rollouts.is_flat, rollouts.loses_weights_at = True, lost_at  # type: ignore[attr-defined]
    with pytest.raises(WeightsLost):
        in_flight.next_groups()
    used = [task for tasks in walk(in_flight, 2) for task in tasks]
    assert used == [task.task_id for task in in_flight.order.take(0, 10)]
    asked = [task for _, _, tasks in rollouts.asked for task in tasks]  # type: ignore[attr-defined]
    assert asked == used


def test_extra_groups_are_cancelled_with_the_others() -> None:
    in_flight = make_ahead(0, extra=1)
    rollouts = in_flight.collector
    rollouts.is_flat, rollouts.loses_weights_at = True, 2  # type: ignore[attr-defined]
    with pytest.raises(WeightsLost):
        in_flight.next_groups()
    in_flight.cancel()
    assert len(rollouts.cancelled) == 2  # type: ignore[attr-defined]


class SlowRollouts:
    """A coordinator whose groups of task t0 take ten times as long; those of every third task are flat."""

    engine_needs_weights = False

    def __init__(self) -> None:
        self.now = 0
        self.asked: dict[int, SampleGroup] = {}
        self.ready: dict[int, int] = {}
        """group_id -> when it is finished; removed once it was delivered."""

    def control(self) -> Control:
        return Control.RUN

    def request_group(self, request: SampleGroup) -> int:
        number = len(self.asked) + 1
        self.asked[number] = request
        self.ready[number] = self.now + (10 if request.task_id == "t0" else 1)
        return number

    def finished_groups(self, after: int, wait_s: float) -> FinishedGroups:
        self.now += 1
        done = [number for number, when in self.ready.items() if when <= self.now]
        groups = []
        for number in done:
            del self.ready[number]
            task = make_task(self.asked[number].task_id)
            rewards = [1.0, 1.0] if int(task.task_id[1:]) % 3 == 0 else [0.0, 1.0]
            groups.append(make_group(rewards, task=task, group_id=number))
        return FinishedGroups(cursor=after + len(done), groups=tuple(groups))


def attempt(saved: dict[str, Any], *, until: int, num_steps: int = 12) -> tuple[list[list[str]], list, list]:
    """Steps of one attempt that is killed before step `until` + 1: (tasks by step, states, ages)."""
    in_flight = make_ahead(4, num_steps=num_steps, extra=2)
    in_flight.order = TaskOrder([make_task(f"t{number}") for number in range(12)], seed=0)
    coordinator = SlowRollouts()
    in_flight.collector = GroupCollector(coordinator, TermSignal())  # type: ignore[arg-type]
    in_flight.state = ExperimentState(**saved)
    in_flight.__post_init__()
    tasks, states, ages = [], [], []
    while in_flight.state.grpo_step < until:
        groups = in_flight.next_groups()
        versions = [coordinator.asked[group.group_id].policy_version for group in groups]
        ages += [in_flight.state.policy_version - version for version in versions]
        tasks.append([group.task.task_id for group in groups])
        in_flight.state.grpo_step += 1
        in_flight.state.policy_version += 1
        states.append(asdict(in_flight.state))
    return tasks, states, ages


def test_kills_train_the_same_tasks_as_none_with_slow_tasks_and_replaced_groups() -> None:
    """Killed at steps 3, 6, 9 and the last, with a checkpoint after every second step."""
    start = asdict(ExperimentState())
    whole, _, _ = attempt(start, until=12)
    assert Counter(map(len, whole))[2] < 12, "groups were replaced"
    kept: list[list[str]] = []
    saved = start
    for killed_at in (3, 6, 9, 12):
        tasks, states, ages = attempt(saved, until=killed_at)
        assert max(ages) <= 4, "also right after the resume"
        safe = killed_at // 2 * 2 - saved["grpo_step"]
        kept += tasks[:safe]
        saved = states[safe - 1] if safe else saved
    assert saved["grpo_step"] == 12
    assert attempt(saved, until=12)[0] == [], "no extra step"
    trained, expected = (Counter(task for step in steps for task in step) for steps in (kept, whole))
    assert trained == expected
    assert kept == whole
    assert trained["t0"] >= min(trained.values()), "the slow one is trained on like the others"
