"""A run of this installation -> the file that samples are made of; see record_sample.py."""

import json
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Model

from scripts.sample_stories import add_stories, failed_of
from webapp.experiments.models import EvaluationTasks, Experiment
from webapp.replay.models import ReplayEntry
from webapp.trajectories.frame_files import read_frame
from webapp.trajectories.models import Group, Trajectory

GROUP = (
    *("purpose", "source", "step", "size", "temperature", "num_final", "num_scored", "finished_seq"),
    *("branch_turn", "reward_mean", "reward_std", "created_at", "finished_at"),
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
EXPERIMENT = (
    *("status", "preset", "config", "step", "policy_version", "created_at", "started_at", "ended_at"),
)
NAME = "Sample: First desk"
NOTE = "A recorded run of four steps, to look around in. Delete it with the button above."


def record(experiment_id: int, target: str) -> None:
    """Write everything that pages show of a finished run, and of one that failed, with their screenshots."""
    experiment = Experiment.objects.get(pk=experiment_id)
    add_stories(experiment)
    write(experiment, target)


def write(experiment: Experiment, target: str) -> None:
    """The run with its branch, take-over and inbox, and the one that failed, made of it."""
    finished = run_of(experiment)
    rows = Group.objects.filter(experiment=experiment).select_related("task")
    tasks = {group.task.task_id: group.task.spec for group in rows}
    frames = {turn["frame"] for turns in _turns(finished) for turn in turns}
    for column in ("last_frame", "final_frame", "thumbnail"):
        frames |= {row["trajectory"][column] for group in finished["groups"] for row in group["members"]}
    with ZipFile(Path(target), "w", ZIP_DEFLATED) as archive:
        runs = {"tasks": tasks, "runs": [finished, failed_of(finished)]}
        archive.writestr("run.json", json.dumps(runs, cls=DjangoJSONEncoder, separators=(",", ":")))
        for sha in sorted(frames - {""}):
            archive.writestr(f"{sha}.png", read_frame(sha, "png"), ZIP_STORED)


def run_of(experiment: Experiment) -> dict[str, Any]:
    """A finished run as JSON."""
    groups = Group.objects.filter(experiment=experiment, finished_at__isnull=False).order_by("pk")
    entries = ReplayEntry.objects.filter(trajectory__experiment=experiment).order_by("pk")
    return {
        "experiment": {"name": NAME, "note": NOTE, **_values(experiment, EXPERIMENT)},
        "stages": [_values(stage, STAGE) for stage in experiment.stages.order_by("position")],
        "metrics": list(experiment.metrics.order_by("name", "step").values_list("name", "step", "value")),
        "evaluations": [
            {"evaluation": _values(found, EVALUATION), "tasks": _tasks_of(found.pk)}
            for found in experiment.evaluations.order_by("pk")
        ],
        "groups": [
            {
                "number": group.pk,
                "task": group.task.task_id,
                "parent": group.parent_id,
                "group": _values(group, GROUP),
                "members": [_member(row) for row in group.trajectories.order_by("member", "pk")],
            }
            for group in groups.select_related("task")
        ],
        "inbox": list(entries.values_list("trajectory", flat=True)),
        **{"alarms": [], "incidents": [], "log": ""},
    }


def _turns(run: dict[str, Any]) -> list[list[dict[str, Any]]]:
    return [row["turns"] for group in run["groups"] for row in group["members"]]


def _values(row: Model, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}


def _tasks_of(evaluation_id: int) -> dict[str, Any]:
    found = EvaluationTasks.objects.filter(evaluation_id=evaluation_id).first()
    return found.results if found else {}


def _member(row: Trajectory) -> dict[str, Any]:
    turns = [_values(turn, TURN) for turn in row.turns.order_by("index")]
    return {"number": row.pk, "trajectory": _values(row, TRAJECTORY), "turns": turns}
