"""A run of this installation -> the file that samples are made of; see record_sample.py."""

import json
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Model

from webapp.experiments.models import EvaluationTasks, Experiment
from webapp.trajectories.frame_files import read_frame
from webapp.trajectories.models import Group, Trajectory

GROUP = (
    *("purpose", "source", "step", "size", "temperature", "num_final", "num_scored"),
    *("reward_mean", "reward_std", "created_at", "finished_at"),
)
TRAJECTORY = (
    *("family", "purpose", "source", "status", "member", "step", "policy_version", "fingerprint", "limit"),
    *("num_turns", "num_parse_errors", "num_prompt_tokens", "num_completion_tokens", "score", "reward"),
    *("advantage", "logprob_gap", "terms", "last_frame", "final_frame", "thumbnail"),
    *("created_at", "started_at", "ended_at"),
)
TURN = (
    *("index", "source", "frame", "width", "height", "observation_text", "completion", "thought", "action"),
    *("dialect", "parse_error", "action_error", "screen_changed", "measured", "terms", "observed_at"),
    *("completed_at", "acted_at", "spent_ms", "earlier_actions"),
)
STAGE = ("name", "position", "status", "done", "total", "unit", "started_at", "ended_at")
EVALUATION = (
    *("name", "step", "policy_version", "split", "num_tasks", "samples_per_task", "num_samples"),
    *("num_success", "success", "low", "high", "per_family", "temperature"),
)
EXPERIMENT = ("preset", "config", "step", "policy_version", "created_at", "started_at", "ended_at")


def record(experiment_id: int, target: str) -> None:
    """Write everything that pages show of a finished run, with its screenshots."""
    experiment = Experiment.objects.get(pk=experiment_id)
    groups = Group.objects.filter(experiment=experiment, finished_at__isnull=False).order_by("pk")
    run: dict[str, Any] = {
        **_values(experiment, EXPERIMENT),
        "stages": [_values(stage, STAGE) for stage in experiment.stages.order_by("position")],
        "metrics": [list(point) for point in experiment.metrics.order_by("name", "step").values_list(
            "name", "step", "value"
        )],
        "evaluations": [
            {**_values(found, EVALUATION), "tasks": _tasks_of(found.pk)}
            for found in experiment.evaluations.order_by("pk")
        ],
        "tasks": {},
        "groups": [],
    }  # fmt: skip
    frames: set[str] = set()
    for group in groups.select_related("task"):
        run["tasks"][group.task.task_id] = group.task.spec
        members = [_member(row, frames) for row in group.trajectories.order_by("member", "pk")]
        run["groups"].append(
            {**_values(group, GROUP), "number": group.pk, "task": group.task.task_id, "members": members}
        )
    with ZipFile(Path(target), "w", ZIP_DEFLATED) as archive:
        archive.writestr("run.json", json.dumps(run, cls=DjangoJSONEncoder, separators=(",", ":")))
        for sha in sorted(frames - {""}):
            archive.writestr(f"{sha}.png", read_frame(sha, "png"), ZIP_STORED)


def _values(row: Model, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}


def _tasks_of(evaluation_id: int) -> dict[str, Any]:
    found = EvaluationTasks.objects.filter(evaluation_id=evaluation_id).first()
    return found.results if found else {}


def _member(row: Trajectory, frames: set[str]) -> dict[str, Any]:
    turns = [_values(turn, TURN) for turn in row.turns.order_by("index")]
    frames.update(turn["frame"] for turn in turns)
    frames.update({row.last_frame, row.final_frame, row.thumbnail})
    return {**_values(row, TRAJECTORY), "turns": turns}
