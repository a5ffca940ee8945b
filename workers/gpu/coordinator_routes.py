"""One small function per coordinator route, and the table that names them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from training.contracts.config import ExperimentConfig
from training.contracts.types import (
    Alarm,
    Control,
    EvaluationResult,
    MemberUpdate,
    Purpose,
    ReplayUse,
    Source,
    Task,
    TrajectoryStatus,
)
from training.rewards import rescore
from webapp.experiments.checkpoints import kept_checkpoints
from webapp.experiments.lifecycle import attempts, trainer_reports
from webapp.experiments.models import Experiment, ExperimentStatus, TaskRecord
from webapp.replay import uses
from webapp.trajectories import lifecycle as trajectories
from webapp.trajectories.models import Group, Trajectory
from webapp.trajectories.row_to_types import group_of, trajectory_of, turn_limit
from workers.gpu.policy_server_process import PolicyServer, WeightsRefused

POLL_S = 0.05
MAX_WAIT_S = 30.0


@dataclass(frozen=True, slots=True)
class Context:
    """What the handlers know of the attempt that they serve."""

    experiment_id: int
    team_id: int
    attempt: int
    config: ExperimentConfig
    policy: PolicyServer


class Refused(Exception):
    """Raised when a request is wrong; carries the HTTP status."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


Handler = Callable[[Context, Any, dict[str, str]], Any]


# --- tasks and groups --------------------------------------------------------------------------------


def get_tasks(context: Context, _: Any, parameters: dict[str, str]) -> list[Task]:
    """Supported tasks of the experiment's set, families and levels."""
    wanted = context.config.tasks
    records = TaskRecord.objects.runnable(context.config.desktops).filter(task_set__name=wanted.task_set)
    if "split" in parameters:
        records = records.filter(split=parameters["split"])
    if wanted.families:
        records = records.filter(family__in=wanted.families)
    if wanted.levels:
        records = records.filter(level__in=wanted.levels)
    return [Task.model_validate(record.spec) for record in records.order_by("task_id")]


def post_groups(context: Context, body: Any, _: dict[str, str]) -> dict[str, int]:
    """Queue a group; returns at once."""
    task = _task(context, body["task_id"])
    group = trajectories.create_group(
        request=trajectories.GroupRequest(
            task=task,
            size=int(body["size"]),
            purpose=Purpose(body["purpose"]),
            source=Source(body.get("source", Source.POLICY)),
            step=int(body.get("step", 0)),
            temperature=float(body.get("temperature", 1.0)),
            policy_version=body.get("policy_version"),
        ),
        team_id=context.team_id,
        experiment=Experiment.objects.get(pk=context.experiment_id),
        attempt=context.attempt,
    )
    return {"group_id": group.pk}


def _task(context: Context, task_id: str) -> TaskRecord:
    wanted = context.config.tasks.task_set
    task = TaskRecord.objects.filter(task_set__name=wanted, task_id=task_id).first()
    if task is None:
        raise Refused(f"task_id: no task {task_id!r} in set {wanted!r}", 404)
    return task


def get_finished_groups(context: Context, _: Any, parameters: dict[str, str]) -> dict[str, Any]:
    """Long poll: groups of this attempt that finished after the cursor, in finishing order."""
    after = int(parameters.get("after", 0))
    deadline = time.monotonic() + min(float(parameters.get("wait", 0)), MAX_WAIT_S)
    finished = Group.objects.filter(
        experiment_id=context.experiment_id, attempt=context.attempt, finished_seq__gt=after
    )
    finished = finished.exclude(purpose=Purpose.BRANCH).order_by("finished_seq")
    while True:
        groups = list(finished.select_related("task")[:64])
        if groups or time.monotonic() >= deadline:
            break
        time.sleep(POLL_S)
    cursor = groups[-1].finished_seq if groups else after
    return {"cursor": cursor, "groups": [group_of(group) for group in groups]}


def cancel_group(context: Context, _: Any, parameters: dict[str, str]) -> dict[str, Any]:
    """Stop a group of this experiment."""
    group = Group.objects.filter(pk=int(parameters["id"]), experiment_id=context.experiment_id).first()
    if group is None:
        raise Refused(f"no group {parameters['id']} in this experiment", 404)
    trajectories.cancel_group(group=group)
    return {}


def get_demonstrations(context: Context, _: Any, __: dict[str, str]) -> list[Any]:
    """Perfect oracle trajectories of the task set's train split, one per task."""
    rows = (
        Trajectory.objects.filter(
            team_id=context.team_id,
            source=Source.ORACLE,
            status=TrajectoryStatus.TERMINATED,
            score=1.0,
            task__task_set__name=context.config.tasks.task_set,
            task__split="train",
        )
        .select_related("task")
        .prefetch_related("turns")
        .order_by("id")
    )
    newest = {row.task_id: row for row in rows}
    return [trajectory_of(row) for row in newest.values()]


# --- replay ------------------------------------------------------------------------------------------


def get_replay(context: Context, _: Any, parameters: dict[str, str]) -> dict[str, Any]:
    """Usable entries of a train task, best first, re-scored with the experiment's reward preset."""
    experiment = Experiment.objects.select_related("team").get(pk=context.experiment_id)
    task = _task(context, parameters["task_id"])
    config = context.config.replay
    entries = list(
        uses.usable_entries(team=experiment.team, task=task, max_policy_age=config.max_policy_age)
        .select_related("trajectory__task", "trajectory__experiment", "trajectory__group")
        .prefetch_related("trajectory__turns")
    )
    if not config.gold_first:
        entries.sort(key=lambda entry: -entry.pk)
    return {"entries": [_entry(context, entry) for entry in entries]}


def _entry(context: Context, entry: Any) -> dict[str, Any]:
    rewards = context.config.rewards
    recorded = trajectory_of(entry.trajectory)
    limit = turn_limit(entry.trajectory)
    rescored = rescore(recorded, rewards.preset, alpha=rewards.alpha, max_turns=limit).model_copy(
        update={"replay_entry_id": entry.pk, "replay_label": entry.verdict}
    )
    return {
        "entry_id": entry.pk,
        "label": entry.verdict,
        "policy_version": entry.trajectory.policy_version,
        "recorded_policy_age": entry.recorded_policy_age,
        "trajectory": rescored,
    }


def post_replay_uses(context: Context, body: Any, _: dict[str, str]) -> dict[str, Any]:
    uses = [ReplayUse.model_validate(use) for use in body]
    uses.record_uses(experiment=Experiment.objects.get(pk=context.experiment_id), uses=uses)
    return {}


# --- reports -----------------------------------------------------------------------------------------


def post_stage(context: Context, body: Any, _: dict[str, str]) -> dict[str, Any]:
    if body["status"] == "started":
        trainer_reports.start_stage(
            experiment_id=context.experiment_id,
            name=body["name"],
            total=int(body.get("total") or 0),
            unit=body.get("unit") or "",
        )
    else:
        trainer_reports.finish_stage(experiment_id=context.experiment_id, name=body["name"])
    return {}


def post_progress(context: Context, body: Any, _: dict[str, str]) -> dict[str, Any]:
    trainer_reports.report_progress(
        experiment_id=context.experiment_id,
        stage=body["stage"],
        done=int(body["done"]),
        total=int(body["total"]),
    )
    return {}


def post_metrics(context: Context, body: Any, _: dict[str, str]) -> dict[str, Any]:
    values = {name: float(value) for name, value in body["values"].items() if value is not None}
    trainer_reports.record_metrics(
        experiment_id=context.experiment_id,
        attempt=context.attempt,
        step=int(body["step"]),
        values=values,
        policy_version=int(body.get("policy_version") or 0),
    )
    return {}


def post_members(context: Context, body: Any, _: dict[str, str]) -> dict[str, Any]:
    updates = [MemberUpdate.model_validate(update) for update in body]
    trajectories.record_member_updates(experiment_id=context.experiment_id, updates=updates)
    return {}


def post_evaluations(context: Context, body: Any, _: dict[str, str]) -> dict[str, Any]:
    trainer_reports.record_evaluation(
        experiment_id=context.experiment_id, result=EvaluationResult.model_validate(body)
    )
    return {}


def post_checkpoints(context: Context, body: Any, _: dict[str, str]) -> dict[str, Any]:
    trainer_reports.record_checkpoint(
        experiment_id=context.experiment_id,
        path=body["path"],
        values={
            "step": int(body["step"]),
            "policy_version": int(body["policy_version"]),
            "is_best": bool(body.get("is_best")),
            "success": body.get("success"),
            "size_bytes": int(body.get("bytes") or 0),
        },
    )
    return {}


def post_checkpoint_deleted(context: Context, body: Any, _: dict[str, str]) -> dict[str, Any]:
    trainer_reports.record_checkpoint_deleted(experiment_id=context.experiment_id, path=body["path"])
    return {}


def get_checkpoints_in_use(context: Context, _: Any, __: dict[str, str]) -> dict[str, list[str]]:
    """Checkpoints that an evaluation, an export or the start of another experiment waits for."""
    return {"paths": kept_checkpoints.paths_in_use(context.experiment_id)}


def post_alarms(context: Context, body: Any, _: dict[str, str]) -> dict[str, Any]:
    for alarm in body:
        trainer_reports.raise_alarm(experiment_id=context.experiment_id, alarm=Alarm.model_validate(alarm))
    return {}


def post_weights(context: Context, body: Any, _: dict[str, str]) -> dict[str, Any]:
    """A step of a weight sync; after the last one the trainer checks the canary itself."""
    try:
        return context.policy.sync_weights(body)
    except WeightsRefused as error:
        raise Refused(str(error), 409) from error


def post_engine(context: Context, body: Any, _: dict[str, str]) -> dict[str, Any]:
    """A colocated engine sleeps during the optimiser step."""
    command = body["command"]
    if command not in ("sleep", "wake"):
        raise Refused(f"command: {command!r} is neither sleep nor wake")
    context.policy.rest(command)
    return {}


def get_control(context: Context, _: Any, __: dict[str, str]) -> dict[str, Any]:
    """What the people want of the trainer, and whether the engine wants its weights."""
    status = attempts.beat_experiment(context.experiment_id)
    return {
        "command": CONTROL_OF_STATUS.get(status, Control.RUN),
        "needs_weights": context.policy.needs_weights(),
    }


CONTROL_OF_STATUS = {
    ExperimentStatus.PAUSING: Control.PAUSE,
    ExperimentStatus.CANCELLING: Control.CANCEL,
    ExperimentStatus.CANCELLED: Control.CANCEL,
}

HANDLERS: dict[tuple[str, str], Handler] = {
    ("GET", "/tasks"): get_tasks,
    ("POST", "/groups"): post_groups,
    ("GET", "/groups/finished"): get_finished_groups,
    ("POST", "/groups/{id}/cancel"): cancel_group,
    ("GET", "/demonstrations"): get_demonstrations,
    ("GET", "/replay"): get_replay,
    ("POST", "/replay/uses"): post_replay_uses,
    ("POST", "/stage"): post_stage,
    ("POST", "/progress"): post_progress,
    ("POST", "/metrics"): post_metrics,
    ("POST", "/members"): post_members,
    ("POST", "/evaluations"): post_evaluations,
    ("POST", "/checkpoints"): post_checkpoints,
    ("POST", "/checkpoints/deleted"): post_checkpoint_deleted,
    ("GET", "/checkpoints/in-use"): get_checkpoints_in_use,
    ("POST", "/alarms"): post_alarms,
    ("POST", "/weights"): post_weights,
    ("POST", "/engine"): post_engine,
    ("GET", "/control"): get_control,
}
