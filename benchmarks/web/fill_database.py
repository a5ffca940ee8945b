"""Fills an empty, migrated database with a long history, in bulk: what the list pages are measured on."""

import json
from collections.abc import Iterator
from datetime import timedelta
from random import Random

from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from benchmarks.web.fill_evaluations import NUM_COMPARED, fill_task_evaluations, matrix_pages
from benchmarks.web.fill_evidence import evidence_pages, fill_evidence
from benchmarks.web.fill_fleet import fill_fleet, fleet_pages
from benchmarks.web.fill_long_run import fill_long_run, long_run_pages
from training.contracts.config import ExperimentConfig
from training.contracts.types import Task
from webapp.accounts.models import Membership, Role, Team
from webapp.dispatcher.upkeep import refresh_statistics
from webapp.experiments.models import (
    Evaluation,
    Experiment,
    ExperimentStatus,
    MetricPoint,
    Stage,
    StageStatus,
    TaskRecord,
    TaskSet,
)
from webapp.lib.keyset_pages import Order, encode_cursor
from webapp.replay.models import LabelEvent, ReplayEntry
from webapp.trajectories.models import Group, Trajectory

NUM_TURNS = 10
GROUP_SIZE = 8
NUM_EXPERIMENTS = 1000
NUM_WAITING = 12
LONG_RUN = 700
"""Index of the experiment that trained for days."""
NUM_TASKS = 300
FAMILIES = ("menu", "typing", "buttons", "sliders", "files")
LASTED = timedelta(days=3)
"""From the first group's end to the last one's."""
BATCH = 5000
STATUSES = ("terminated",) * 88 + ("truncated",) * 8 + ("errored",) * 3 + ("cancelled",)
REWARDS = (0.0, 0.0, 0.1, 0.3, 0.5, 0.9, 1.0, 1.0)
TERMS = [
    {"name": f"{name}.v1", "value": 1.0, "weight": 0.5, "contribution": 0.5, "note": ""}
    for name in ("task_score", "partial", "invalid", "repetition", "length")
]
COMPLETION = {
    "text": '{"action": "click", "x": 512, "y": 384}',
    "token_ids": list(range(1000, 1024)),
    "behaviour_logprobs": [-0.0123] * 24,
    "policy_version": 3,
    "finish_reason": "stop",
    "num_prompt_tokens": 640,
}
TURNS = """
INSERT INTO trajectories_turnrecord
  (trajectory_id, "index", source, frame, width, height, observation_text, completion, thought, action,
   dialect, parse_error, action_error, screen_changed, is_context, terms, observed_at, completed_at, acted_at)
SELECT t.id, n.number, 'policy', t.last_frame, 512, 384, '', %s, 'The third row is highlighted.', %s, 'json',
       '', '', TRUE, FALSE, '[]', t.started_at, t.started_at, t.started_at
FROM trajectories_trajectory t, (SELECT id - (SELECT MIN(id) FROM experiments_stage) AS number
                                 FROM experiments_stage ORDER BY id LIMIT {num_turns}) n
WHERE t.id > %s AND t.id <= %s
"""


def fill(num_trajectories: int) -> tuple[Team, User]:
    """The team and its admin. A second team has a tenth as much, so that team filters have work."""
    random = Random(7)
    task_set = TaskSet.objects.create(name="bench")
    tasks = _fill_tasks(task_set)
    other = Team.objects.create(name="other")
    team = Team.objects.create(name="bench")
    user = User.objects.create(username="bench")
    Membership.objects.create(team=team, user=user, role=Role.ADMIN)
    _fill_experiments(other, user, 100)
    experiments = _fill_experiments(team, user, NUM_EXPERIMENTS)
    fill_task_evaluations(experiments[:NUM_COMPARED])
    _fill_trajectories(other, [None], tasks, num_trajectories // 10, random)
    _fill_trajectories(team, experiments, tasks, num_trajectories, random)
    fill_long_run(experiments[LONG_RUN])
    _fill_turns()
    _fill_entries(team, user)
    fill_evidence(team, user, experiments)
    fill_fleet()
    _analyze()
    return team, user


def _fill_tasks(task_set: TaskSet) -> list[TaskRecord]:
    def tasks() -> Iterator[TaskRecord]:
        for number in range(NUM_TASKS):
            family = FAMILIES[number % len(FAMILIES)]
            text = f"Open the menu of the editor and choose row {number}, then save the file and close it"
            spec = Task(task_id=f"{family}-{number}", instruction=text, family=family)
            yield TaskRecord.made_from(spec, task_set=task_set)

    return TaskRecord.objects.bulk_create(tasks())


def _fill_experiments(team: Team, owner: User, number: int) -> list[Experiment]:
    config = ExperimentConfig().model_dump(mode="json")
    now = timezone.now()
    rows = Experiment.objects.bulk_create(
        Experiment(
            team=team,
            owner=owner,
            name=f"First desk, run {index}",
            preset="first-desk",
            config=config,
            status=_experiment_status(index, number),
            queue_order=index,
            stage="grpo",
            step=20,
            message="Finished.",
            started_at=now - timedelta(hours=number - index),
            ended_at=now - timedelta(hours=number - index, minutes=-9),
        )
        for index in range(number)
    )
    _fill_stages(rows)
    _fill_evaluations(rows)
    _fill_points(rows[-20:])
    return rows


def _fill_stages(rows: list[Experiment]) -> None:
    names = ("evaluation-before", "grpo", "evaluation-after")
    Stage.objects.bulk_create(
        (
            Stage(
                experiment=row,
                name=name,
                position=place,
                status=StageStatus.FINISHED,
                done=20,
                total=20,
                unit="steps",
            )
            for row in rows
            for place, name in enumerate(names)
        ),
        batch_size=BATCH,
    )


def _fill_evaluations(rows: list[Experiment]) -> None:
    Evaluation.objects.bulk_create(
        (
            Evaluation(
                experiment=row,
                name=name,
                step=step,
                policy_version=step,
                split="heldout",
                temperature=temperature,
                num_tasks=72,
                num_samples=72,
                num_success=30 + step,
                success=0.5,
                low=0.4,
                high=0.6,
            )
            for row in rows
            for name, step in (("before", 0), ("after", 20))
            for temperature in (1.0, 0.0)
        ),
        batch_size=BATCH,
    )


def _fill_points(rows: list[Experiment]) -> None:
    MetricPoint.objects.bulk_create(
        (
            MetricPoint(experiment=row, name=name, step=step, value=0.5)
            for row in rows
            for name in ("rollout/reward_mean", "loss/policy", "policy/entropy", "optimiser/grad_norm")
            for step in range(200)
        ),
        batch_size=BATCH,
    )


def _experiment_status(index: int, number: int) -> str:
    if index >= number - NUM_WAITING:
        return ExperimentStatus.QUEUED
    if index >= number - NUM_WAITING - 2:
        return ExperimentStatus.RUNNING
    if index >= number - NUM_WAITING - 4:
        return ExperimentStatus.PAUSED
    return ExperimentStatus.FAILED if index % 10 == 0 else ExperimentStatus.FINISHED


def _fill_trajectories(
    team: Team,
    experiments: list[Experiment] | list[None],
    tasks: list[TaskRecord],
    number: int,
    random: Random,
) -> None:
    num_groups = number // GROUP_SIZE
    first = timezone.now() - LASTED
    apart = LASTED / num_groups
    groups = Group.objects.bulk_create(
        (
            Group(
                team=team,
                experiment=experiments[index * len(experiments) // num_groups],
                task=random.choice(tasks),
                purpose="train" if index % 4 else "evaluation",
                step=index % 20,
                size=GROUP_SIZE,
                num_final=GROUP_SIZE,
                num_scored=GROUP_SIZE,
                reward_mean=0.4,
                reward_std=0.3,
                finished_seq=index,
                finished_at=first + index * apart,
            )
            for index in range(num_groups)
        ),
        batch_size=BATCH,
    )
    Trajectory.objects.bulk_create(
        (_trajectory(group, member, random) for group in groups for member in range(GROUP_SIZE)),
        batch_size=BATCH,
    )


def _trajectory(group: Group, member: int, random: Random) -> Trajectory:
    status = random.choice(STATUSES)
    reward = random.choice(REWARDS) if status in ("terminated", "truncated") else None
    return Trajectory(
        team_id=group.team_id,
        experiment_id=group.experiment_id,
        group=group,
        task_id=group.task_id,
        family=group.task.family,
        purpose=group.purpose,
        source="oracle" if group.pk % 50 == 0 else "policy",
        status=status,
        member=member,
        step=group.step,
        policy_version=group.step,
        num_turns=NUM_TURNS,
        num_parse_errors=1 if random.random() < 0.02 else 0,
        score=None if reward is None else float(reward >= 0.5),
        reward=reward,
        advantage=None if reward is None else reward - 0.4,
        terms=TERMS if reward is not None else [],
        error="The desktop did not answer." if status == "errored" else "",
        error_kind="desktop" if status == "errored" else "",
        last_frame=f"{random.getrandbits(256):064x}",
        started_at=group.finished_at,
        ended_at=group.finished_at,
    )


def _fill_turns() -> None:
    """Ten turns for each trajectory, inside the database."""
    last = Trajectory.objects.order_by("-id").values_list("pk", flat=True).first() or 0
    action = json.dumps({"kind": "click", "x": 100, "y": 80})
    statement = TURNS.format(num_turns=NUM_TURNS)
    with connection.cursor() as cursor:
        for start in range(0, last, BATCH):
            cursor.execute(statement, [json.dumps(COMPLETION), action, start, start + BATCH])


def _fill_entries(team: Team, user: User) -> None:
    """The successes of train groups wait in the inbox; the older half has been labelled."""
    chosen = Trajectory.objects.filter(team=team, purpose="train", score__gte=0.5)
    rows = list(chosen.values_list("pk", "family", "task_id"))
    entries = ReplayEntry.objects.bulk_create(
        (
            ReplayEntry(
                team=team,
                trajectory_id=pk,
                family=family,
                signature=f"{task_id}:{pk % 40}",
                verdict=("accepted", "gold", "rejected")[index % 3] if index < len(rows) // 2 else "inbox",
            )
            for index, (pk, family, task_id) in enumerate(rows)
        ),
        batch_size=BATCH,
    )
    before = {"verdict": "inbox", "tags": [], "note": ""}
    LabelEvent.objects.bulk_create(
        (
            LabelEvent(entry=entry, by=user, before=before, after={**before, "verdict": entry.verdict})
            for entry in entries[: len(rows) // 2]
        ),
        batch_size=BATCH,
    )


def _analyze() -> None:
    """What PostgreSQL does by itself soon after a bulk load, and the dispatcher for SQLite."""
    refresh_statistics()
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")


def list_pages(team_id: int) -> dict[str, str]:
    """Name -> path of every page with a list."""
    rows = Trajectory.objects.filter(team_id=team_id).order_by("id")
    middle = rows[rows.count() // 2]
    deep = encode_cursor(middle, Order.parse("-id"))
    deep_reward = encode_cursor(rows.filter(reward=0.5)[100], Order.parse("-reward"))
    experiment = Experiment.objects.filter(team_id=team_id).order_by("id")[500]
    group = Group.objects.filter(experiment=experiment).order_by("id").first()
    return {
        "trajectories": "/trajectories/",
        "trajectories, deep": f"/trajectories/?after={deep}",
        "trajectories, errored": "/trajectories/?status=errored",
        "trajectories, active (none)": "/trajectories/?status=active",
        "trajectories, family": "/trajectories/?family=sliders",
        "trajectories, family + solved": "/trajectories/?family=menu&success=yes",
        "trajectories, parse errors": "/trajectories/?problem=parse",
        "trajectories, oracle + evaluation": "/trajectories/?source=oracle&purpose=evaluation",
        "trajectories, human (none)": "/trajectories/?source=human",
        "trajectories, experiment": f"/trajectories/?experiment={experiment.pk}",
        "trajectories, by reward": "/trajectories/?sort=reward",
        "trajectories, by reward, deep": f"/trajectories/?sort=reward&after={deep_reward}",
        "trajectories, lowest reward, family": "/trajectories/?sort=reward-low&family=files",
        "experiments": "/experiments/",
        "experiments, failed": "/experiments/?status=failed",
        "experiments, search": "/experiments/?q=run+77",
        "experiments, by duration": "/experiments/?sort=duration",
        **matrix_pages(team_id),
        **long_run_pages(Experiment.objects.filter(team_id=team_id).order_by("id")[LONG_RUN]),
        **evidence_pages(team_id),
        "queue": "/queue/",
        "groups of an experiment": f"/experiments/{experiment.pk}/parts/groups/",
        "group": f"/groups/{group.pk}/",
        "replay inbox": "/replay/",
        "replay inbox, family": "/replay/?family=buttons",
        "replay, gold": "/replay/?verdict=gold",
        "replay, experiment": f"/replay/?verdict=all&experiment={experiment.pk}",
        "replay, coverage": "/replay/stats/",
        "fleet": "/fleet/",
        **fleet_pages(),
        "API trajectories": "/api/v1/trajectories",
    }
