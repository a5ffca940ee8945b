"""What the trainer samples from: tasks, groups, demonstrations, replay entries and frames."""

from __future__ import annotations

import time

from training.contracts import coordinator as routes
from training.contracts.route_types import Nothing
from training.contracts.types import Purpose, Source, Task, TrajectoryStatus
from training.contracts.types import Trajectory as WireTrajectory
from training.rewards import rescore
from workers.gpu.coordinator.handler_contract import NOTHING, AttemptContext, RequestRefused, handles
from workers.gpu.webapp_imports import (
    Experiment,
    Group,
    TaskRecord,
    Trajectory,
    WeightLineage,
    give_back_connection,
    group_of,
    injections,
    patiently,
    read_frame,
    trajectories,
    trajectory_of,
    turn_limit,
)

POLL_S = 0.15
"""A look costs milliseconds and a step takes seconds: three times as many were a sixth of a turn's CPU."""
MAX_WAIT_S = 30.0
MAX_GROUPS = 64
"""In one answer of the long poll."""


def get_tasks(context: AttemptContext, query: routes.TaskQuery) -> list[Task]:
    wanted = context.config.tasks
    records = TaskRecord.objects.named_by(wanted, context.team_id).runnable(context.config.desktops)
    if query.split:
        records = records.filter(split=query.split)
    if wanted.families:
        records = records.filter(family__in=wanted.families)
    if wanted.levels:
        records = records.filter(level__in=wanted.levels)
    return [Task.model_validate(record.spec) for record in records.order_by("task_id")]


def sample_group(context: AttemptContext, wanted: routes.SampleGroup) -> routes.GroupId:
    group = trajectories.create_group(
        request=trajectories.GroupSpec(
            task=_task(context, wanted.task_id),
            size=wanted.size,
            purpose=wanted.purpose,
            source=wanted.source,
            step=wanted.step,
            temperature=wanted.temperature,
            policy_version=wanted.policy_version,
        ),
        team_id=context.team_id,
        experiment=Experiment.objects.get(pk=context.experiment_id),
        attempt=context.attempt,
    )
    return routes.GroupId(group_id=group.pk)


def _task(context: AttemptContext, task_id: str) -> TaskRecord:
    wanted = context.config.tasks
    task = TaskRecord.objects.named_by(wanted, context.team_id).filter(task_id=task_id).first()
    if task is None:
        raise RequestRefused(f"task_id: no task {task_id!r} in set {wanted.task_set!r}", 404)
    return task


def get_finished_groups(context: AttemptContext, query: routes.FinishedQuery) -> routes.FinishedGroups:
    deadline = time.monotonic() + min(query.wait, MAX_WAIT_S)
    finished = Group.objects.filter(
        experiment_id=context.experiment_id, attempt=context.attempt, finished_seq__gt=query.after
    )
    finished = finished.exclude(purpose=Purpose.BRANCH).order_by("finished_seq")
    while not finished.exists() and time.monotonic() < deadline:
        give_back_connection()
        time.sleep(POLL_S)
    groups = list(finished.select_related("task")[:MAX_GROUPS])
    cursor = (groups[-1].finished_seq if groups else None) or query.after
    return routes.FinishedGroups(cursor=cursor, groups=tuple(group_of(group) for group in groups))


def cancel_group(context: AttemptContext, wanted: routes.GroupId) -> Nothing:
    group = Group.objects.filter(pk=wanted.group_id, experiment_id=context.experiment_id).first()
    if group is None:
        raise RequestRefused(f"group_id: no group {wanted.group_id} in this experiment", 404)
    trajectories.cancel_group(group=group)
    return NOTHING


def get_demonstrations(context: AttemptContext, _: Nothing) -> list[WireTrajectory]:
    rows = (
        Trajectory.objects.filter(
            team_id=context.team_id,
            source=Source.ORACLE,
            status=TrajectoryStatus.TERMINATED,
            score=1.0,
            task__in=TaskRecord.objects.named_by(context.config.tasks, context.team_id),
            task__split="train",
        )
        .select_related("task")
        .prefetch_related("turns")
        .order_by("id")
    )
    newest = {row.task_id: row for row in rows}
    return [trajectory_of(row) for row in newest.values()]


def get_replay(context: AttemptContext, query: routes.ReplayQuery) -> routes.ReplayCandidates:
    experiment = Experiment.objects.select_related("team").get(pk=context.experiment_id)
    task = _task(context, query.task_id)
    offers = injections.offers(team=experiment.team, task=task, snapshot=context.config.replay.snapshot)
    if not context.config.replay.gold_first:
        offers.sort(key=lambda offer: -offer.entry.pk)
    lineage = WeightLineage(context.team_id)
    return routes.ReplayCandidates(
        entries=tuple(
            _candidate(context, offer, injections.policy_age(offer.entry.trajectory, experiment, lineage))
            for offer in offers
        )
    )


def _candidate(
    context: AttemptContext, offer: injections.Offer, policy_age: int | None
) -> routes.ReplayCandidate:
    entry = offer.entry
    recorded = trajectory_of(entry.trajectory)
    limit = turn_limit(entry.trajectory)
    rescored = rescore(recorded, context.config.rewards, max_turns=limit).model_copy(
        update={"replay_entry_id": entry.pk, "replay_label": offer.label}
    )
    return routes.ReplayCandidate(
        entry_id=entry.pk,
        label=offer.label,
        policy_age=policy_age,
        trajectory=offer.as_injected(rescored),
    )


def get_frame(_: AttemptContext, wanted: routes.FrameName) -> bytes:
    try:
        return patiently(read_frame, wanted.sha256)
    except FileNotFoundError as error:
        raise RequestRefused(f"sha256: no frame {wanted.sha256}", 404) from error


OF_EVERY_HOST = (handles(routes.FRAME, get_frame),)
"""What ranks beside the first ask, each of its own host."""
HANDLERS = (
    *OF_EVERY_HOST,
    handles(routes.TASKS, get_tasks),
    handles(routes.SAMPLE_GROUP, sample_group),
    handles(routes.FINISHED_GROUPS, get_finished_groups),
    handles(routes.CANCEL_GROUP, cancel_group),
    handles(routes.DEMONSTRATIONS, get_demonstrations),
    handles(routes.REPLAY, get_replay),
)
