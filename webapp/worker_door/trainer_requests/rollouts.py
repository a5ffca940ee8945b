"""What the trainer samples from: tasks, groups, demonstrations and replay entries."""

import time
from typing import Any

from training.contracts import coordinator as routes
from training.contracts.route_types import Nothing
from training.contracts.types import Source, Task, TrajectoryStatus
from training.contracts.types import Trajectory as WireTrajectory
from training.rewards import rescore
from webapp.experiments.models import TaskRecord
from webapp.experiments.queries.weight_lineage import WeightLineage
from webapp.lib.database_pool import give_back_connection
from webapp.lib.remote_calls import caller
from webapp.replay.fit_for_experiments import policy_age
from webapp.replay.services import injections
from webapp.trajectories.models import Group, Trajectory
from webapp.trajectories.queries.branches import BranchRefused
from webapp.trajectories.row_to_types import group_of, trajectory_of, turn_limit
from webapp.trajectories.services import groups as group_services
from webapp.trajectories.services.credit_measures import start_of
from webapp.worker_door.trainer_requests.contract import RequestRefused, TrainerCall, handles, takes

POLL_S = 0.15
"""A look costs milliseconds and a step takes seconds: three times as many were a sixth of a turn's CPU."""
MAX_WAIT_S = 30.0
MAX_WAIT_OF_JOINED_S = 8.0
"""Well within the time-out of a joined host's call."""
MAX_GROUPS = 64
"""In one answer of the long poll."""


def get_tasks(call: TrainerCall, query: routes.TaskQuery) -> list[Task]:
    wanted = call.config.tasks
    records = TaskRecord.objects.named_by(wanted, call.team_id).runnable(call.config.desktops)
    if query.split:
        records = records.filter(split=query.split)
    if families := (call.config.sft.families if query.for_sft else ()) or wanted.families:
        records = records.filter(family__in=families)
    if wanted.levels:
        records = records.filter(level__in=wanted.levels)
    return [Task.model_validate(record.spec) for record in records.order_by("task_id")]


def sample_group(call: TrainerCall, wanted: routes.SampleGroup) -> routes.GroupId:
    group = group_services.create_group(
        request=group_services.GroupSpec(
            task=_task(call, wanted.task_id),
            size=wanted.size,
            purpose=wanted.purpose,
            source=wanted.source,
            step=wanted.step,
            temperature=wanted.temperature,
            policy_version=wanted.policy_version,
            **_start(call, wanted),
        ),
        team_id=call.team_id,
        experiment=call.attempt.experiment,
        attempt=call.attempt.number,
        key=call.key,
    )
    return routes.GroupId(group_id=group.pk)


def _start(call: TrainerCall, wanted: routes.SampleGroup) -> dict[str, Any]:
    """Of a branch: where its desktops begin."""
    if wanted.parent_id is None:
        return {}
    parent = Trajectory.objects.filter(pk=wanted.parent_id, experiment_id=call.experiment_id).first()
    if parent is None:
        raise RequestRefused(f"parent_id: no trajectory {wanted.parent_id} in this experiment", 404)
    try:
        return start_of(parent, wanted.branch_turn)
    except BranchRefused as refused:
        raise RequestRefused(f"branch_{refused.field}: {refused}", 409) from refused


def _task(call: TrainerCall, task_id: str) -> TaskRecord:
    wanted = call.config.tasks
    task = TaskRecord.objects.named_by(wanted, call.team_id).filter(task_id=task_id).first()
    if task is None:
        raise RequestRefused(f"task_id: no task {task_id!r} in set {wanted.task_set!r}", 404)
    return task


def get_finished_groups(call: TrainerCall, query: routes.FinishedQuery) -> routes.FinishedGroups:
    deadline = time.monotonic() + min(query.wait, MAX_WAIT_OF_JOINED_S if caller.get() else MAX_WAIT_S)
    finished = Group.objects.filter(
        experiment_id=call.experiment_id, attempt=call.attempt.number, finished_seq__gt=query.after
    ).order_by("finished_seq")
    while not finished.exists() and time.monotonic() < deadline:
        give_back_connection()
        time.sleep(POLL_S)
    groups = list(finished.select_related("task")[:MAX_GROUPS])
    cursor = (groups[-1].finished_seq if groups else None) or query.after
    return routes.FinishedGroups(cursor=cursor, groups=tuple(group_of(group) for group in groups))


def cancel_group(call: TrainerCall, wanted: routes.GroupId) -> None:
    group = Group.objects.filter(pk=wanted.group_id, experiment_id=call.experiment_id).first()
    if group is None:
        raise RequestRefused(f"group_id: no group {wanted.group_id} in this experiment", 404)
    group_services.cancel_group(group=group)


def get_demonstrations(call: TrainerCall, _: Nothing) -> list[WireTrajectory]:
    rows = (
        Trajectory.objects.filter(
            team_id=call.team_id,
            source=Source.ORACLE,
            status=TrajectoryStatus.TERMINATED,
            score=1.0,
            task__in=TaskRecord.objects.named_by(call.config.tasks, call.team_id),
            task__split="train",
        )
        .select_related("task")
        .prefetch_related("turns")
        .order_by("id")
    )
    newest = {row.task_id: row for row in rows}
    return [trajectory_of(row) for row in newest.values()]


def get_replay(call: TrainerCall, query: routes.ReplayQuery) -> routes.ReplayCandidates:
    experiment = call.attempt.experiment
    task = _task(call, query.task_id)
    offers = injections.offers(team=experiment.team, task=task, snapshot=call.config.replay.snapshot)
    if not call.config.replay.gold_first:
        offers.sort(key=lambda offer: -offer.entry.pk)
    lineage = WeightLineage(call.team_id)
    return routes.ReplayCandidates(
        entries=tuple(
            _candidate(call, offer, policy_age(offer.entry.trajectory, experiment, lineage))
            for offer in offers
        )
    )


def _candidate(call: TrainerCall, offer: injections.Offer, policy_age: int | None) -> routes.ReplayCandidate:
    entry = offer.entry
    recorded = trajectory_of(entry.trajectory)
    limit = turn_limit(entry.trajectory)
    rescored = rescore(recorded, call.config.rewards, max_turns=limit).model_copy(
        update={"replay_entry_id": entry.pk, "replay_label": offer.label}
    )
    return routes.ReplayCandidate(
        entry_id=entry.pk,
        label=offer.label,
        policy_age=policy_age,
        trajectory=offer.as_injected(rescored),
    )


HANDLERS = (
    handles(routes.TASKS, get_tasks),
    handles(routes.SAMPLE_GROUP, sample_group),
    handles(routes.FINISHED_GROUPS, get_finished_groups),
    takes(routes.CANCEL_GROUP, cancel_group),
    handles(routes.DEMONSTRATIONS, get_demonstrations),
    handles(routes.REPLAY, get_replay),
)
