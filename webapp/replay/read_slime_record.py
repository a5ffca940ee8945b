"""One line of Slime-OSWorld's replay format -> a checked record. Every problem names its field."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from training.contracts.types import Source, Turn
from webapp.accounts.models import Team
from webapp.experiments.models import TaskRecord, TaskSet
from webapp.replay.import_images import StoredImage, store_image
from webapp.replay.imported_messages import ReadProblem, turns_of_messages
from webapp.replay.inbox_admission import ADMISSION_SCORE


@dataclass
class Record:
    """One line, checked."""

    task: TaskRecord
    turns: list[Turn]
    reward: float
    is_reward_assumed: bool
    score: float
    source: str
    policy_version: int | None
    terms: list[dict[str, Any]] = field(default_factory=list)
    desktops: dict[str, int] = field(default_factory=dict)
    """{"max_turns"} under which it was recorded; empty when the line does not tell."""
    label: dict[str, Any] = field(default_factory=dict)
    """{"verdict", "tags", "note"} of our own exports."""


def read_record(line: str, team: Team, tasks: dict[str, TaskRecord], task_set: TaskSet) -> Record:
    """Check one line. Raises ReadProblem or ImageProblem."""
    try:
        data = json.loads(line)
    except ValueError as error:
        raise ReadProblem("", f"not JSON ({error})") from error
    if not isinstance(data, dict):
        raise ReadProblem("", "not a JSON object")
    metadata = _mapping(data.get("metadata"))
    task = find_task(data, metadata, tasks, task_set)
    reward, is_assumed = read_reward(data)
    images = [store_image(team, text, f"images[{i}]") for i, text in enumerate(read_images(data))]
    own = _mapping(metadata.get("deskhand"))
    if own.get("turns"):
        turns = own_turns(own["turns"], images)
    else:
        turns = turns_of_messages(data.get("messages") or data.get("conversations"), images)
    version = metadata.get("policy_version")
    return Record(
        task=task,
        turns=turns,
        reward=reward,
        is_reward_assumed=is_assumed,
        score=read_score(metadata, reward),
        source=own["source"] if own.get("source") in tuple(Source) else Source.HUMAN.value,
        policy_version=version if isinstance(version, int) and own.get("turns") else None,
        terms=own["terms"] if isinstance(own.get("terms"), list) else [],
        desktops=recorded_limit(own),
        label={name: own[name] for name in ("verdict", "tags", "note") if name in own},
    )


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def find_task(
    data: dict[str, Any], metadata: dict[str, Any], tasks: dict[str, TaskRecord], task_set: TaskSet
) -> TaskRecord:
    """By metadata.task_id, id or task_id; a chunk's suffix is dropped."""
    task_id = str(metadata.get("task_id") or data.get("id") or data.get("task_id") or "")
    if not task_id:
        raise ReadProblem("task_id", "missing")
    task = tasks.get(task_id) or tasks.get(task_id.partition("_chunk")[0])
    if task is None:
        raise ReadProblem("task_id", f"the task set {task_set.name} has no task {task_id!r}")
    return task


def read_reward(data: dict[str, Any]) -> tuple[float, bool]:
    """(reward, was it assumed)."""
    reward = data.get("reward")
    if reward is None:
        return 1.0, True
    if isinstance(reward, bool) or not isinstance(reward, int | float):
        raise ReadProblem("reward", f"not a number: {reward!r}")
    if reward < ADMISSION_SCORE:
        raise ReadProblem("reward", f"{reward} is below {ADMISSION_SCORE}; only successes enter the buffer")
    return float(reward), False


def read_score(metadata: dict[str, Any], reward: float) -> float:
    """The evaluator's score, in [0, 1]; the reward cut to it when there is none."""
    raw = metadata.get("raw_reward")
    if not isinstance(raw, int | float):
        return min(1.0, max(0.0, reward))
    if not 0.0 <= raw <= 1.0:
        raise ReadProblem("metadata.raw_reward", f"{raw} is no score; it must be from 0 to 1")
    return float(raw)


def recorded_limit(own: dict[str, Any]) -> dict[str, int]:
    """`max_turns` of one of our own exports, as the group's desktops hold it."""
    limit = own.get("max_turns")
    if limit is None:
        return {}
    if not isinstance(limit, int) or limit < 1:
        raise ReadProblem("metadata.deskhand.max_turns", f"not a number of turns: {limit!r}")
    return {"max_turns": limit}


def read_images(data: dict[str, Any]) -> list[str]:
    images = data.get("images") or []
    if not isinstance(images, list) or not all(isinstance(image, str) for image in images):
        raise ReadProblem("images", "not a list of strings")
    return images


def own_turns(raw: Any, images: list[StoredImage]) -> list[Turn]:
    """The exact turns of one of our own exports; their frames must be among its images."""
    known = {image.sha256 for image in images}
    turns = []
    for place, item in enumerate(raw if isinstance(raw, list) else []):
        try:
            turn = Turn.model_validate(item)
        except ValidationError as error:
            first = error.errors()[0]
            path = ".".join(str(part) for part in first["loc"])
            raise ReadProblem(f"metadata.deskhand.turns[{place}].{path}", first["msg"]) from error
        sha = turn.observation.sha256
        if sha and sha not in known and turn.action is not None:
            raise ReadProblem(f"metadata.deskhand.turns[{place}].observation", "its image is not in `images`")
        if sha not in known:
            turn = turn.model_copy(update={"observation": turn.observation.model_copy(update={"sha256": ""})})
        turns.append(turn)
    return turns
