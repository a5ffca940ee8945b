"""A large replay buffer in bulk: entries of a few ways to do each task, a few pixels apart."""

from __future__ import annotations

import random
from collections.abc import Iterator

from django.utils import timezone

from testing.factories import make_experiment, make_group, make_task, make_task_set
from testing.first_desk_screens import MENU, menu_screen
from training.contracts.types import Purpose, Source, TrajectoryStatus
from webapp.accounts.models import Team
from webapp.replay.models import ReplayEntry, Verdict
from webapp.replay.services.clusters import compare_waiting
from webapp.trajectories.models import Group, Trajectory, TurnRecord
from webapp.trajectories.services.frames import store_frame

NUM_TASKS = 60
NUM_WAYS = 6
NUM_TURNS = 8
VERDICTS = [Verdict.INBOX] * 7 + [Verdict.ACCEPTED] * 2 + [Verdict.GOLD]
BATCH = 1000


def fill_buffer(team: Team, number: int) -> None:
    """`number` entries, the first ways far more frequent; none is compared yet."""
    rng = random.Random(7)
    experiment = make_experiment(team=team, policy_version=60)
    task_set = make_task_set()
    groups = [
        make_group(experiment=experiment, task=make_task(task_set=task_set, family=f"family {place % 8}"))
        for place in range(NUM_TASKS)
    ]
    screens = [store_frame(team, menu_screen(place)) for place in range(len(MENU))]
    for start in range(0, number, BATCH):
        rows = Trajectory.objects.bulk_create(
            _trajectory(rng.choice(groups), screens, rng) for _ in range(min(BATCH, number - start))
        )
        turns = [turn for row in rows for turn in _turns(row, screens, rng)]
        TurnRecord.objects.bulk_create(turns, batch_size=500)
        ReplayEntry.objects.bulk_create(
            ReplayEntry(
                team=team, trajectory=row, family=row.family, verdict=rng.choice(VERDICTS), num_still=0
            )
            for row in rows
        )


def compare() -> int:
    """Have all entries compared; returns how many."""
    return sum(compare_waiting())


def _trajectory(group: Group, screens: list[str], rng: random.Random) -> Trajectory:
    now = timezone.now()
    reward = round(rng.uniform(0.5, 1.0), 2)
    return Trajectory(
        team=group.team,
        experiment=group.experiment,
        group=group,
        task=group.task,
        family=group.task.family,
        purpose=Purpose.TRAIN,
        source=Source.POLICY,
        status=TrajectoryStatus.TERMINATED,
        policy_version=rng.randrange(60),
        num_turns=NUM_TURNS,
        score=1.0,
        reward=reward,
        last_frame=rng.choice(screens),
        started_at=now,
        ended_at=now,
    )


def _turns(row: Trajectory, screens: list[str], rng: random.Random) -> Iterator[TurnRecord]:
    """One of the task's ways, whose points are those of task and way with some pixels of noise."""
    way = min(int(rng.expovariate(0.8)), NUM_WAYS - 1)
    points = random.Random(f"{row.task_id}/{way}")
    now = timezone.now()
    for index in range(NUM_TURNS):
        x, y = points.randrange(20, 480), points.randrange(20, 360)
        noise = rng.randrange(-6, 7)
        yield TurnRecord(
            trajectory=row,
            index=index,
            frame=screens[points.randrange(len(screens))],
            width=512,
            height=384,
            action={"kind": "click", "x": x + noise, "y": y + noise},
            dialect="json",
            observed_at=now,
            completed_at=now,
            acted_at=now,
        )
