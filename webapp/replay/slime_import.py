"""JSON lines of Slime-OSWorld's replay format -> replay entries. All of a file or nothing of it.

Every problem names its line and field. Records that we exported bring their exact turns along; others are
read from their messages. A missing reward counts as 1.0 and is tagged `assumed-reward`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from pydantic import ValidationError

from training.contracts.types import Purpose, Source, TrajectoryStatus, Turn
from webapp.accounts.models import Team
from webapp.experiments.models import TaskRecord, TaskSet
from webapp.lib.storable_text import storable
from webapp.replay.admission import ADMISSION_SCORE
from webapp.replay.automatic_checks import longest_still_run, signature_of
from webapp.replay.import_images import ImageProblem, StoredImage, store_image
from webapp.replay.imported_messages import ReadProblem, turns_of_messages
from webapp.replay.labels import label_entry
from webapp.replay.models import ReplayEntry, Verdict
from webapp.trajectories.models import Group, Trajectory, TurnRecord

MAX_PROBLEMS = 50
MAX_RECORDS = 10_000
ASSUMED_TAG = "assumed-reward"


class ImportRefused(ValueError):
    """Raised when a file has problems; `problems` are sentences that start with "line N: field:"."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


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


def import_lines(
    *, lines: Iterable[str], team: Team, task_set: TaskSet, user: User, keep_labels: bool = False
) -> list[ReplayEntry]:
    """Check every line, then store all entries; they wait in the inbox unless `keep_labels`.

    Raises ImportRefused, with nothing but frames stored.
    """
    records: list[Record] = []
    problems: list[str] = []
    tasks = {task.task_id: task for task in task_set.tasks.all()}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        if number > MAX_RECORDS:
            raise ImportRefused([f"line {number}: at most {MAX_RECORDS} lines; split the file"])
        try:
            records.append(read_record(line, team, tasks, task_set))
        except (ReadProblem, ImageProblem) as problem:
            problems.append(f"line {number}: {problem}")
            if len(problems) >= MAX_PROBLEMS:
                break
    if not records and not problems:
        problems.append("line 1: the file is empty")
    if problems:
        raise ImportRefused(problems)
    with transaction.atomic():
        return [store_record(record, team, user, keep_labels) for record in records]


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


def store_record(record: Record, team: Team, user: User, keep_labels: bool) -> ReplayEntry:
    """A group of one, its trajectory with turns, and the entry."""
    now = timezone.now()
    group = Group.objects.create(
        team=team,
        task=record.task,
        purpose=Purpose.DEMONSTRATION,
        source=record.source,
        desktops=record.desktops,
        size=1,
        num_final=1,
        num_scored=1,
        reward_mean=record.reward,
        finished_at=now,
    )
    trajectory = Trajectory.objects.create(
        team=team,
        group=group,
        task=record.task,
        family=record.task.family,
        purpose=Purpose.DEMONSTRATION,
        source=record.source,
        status=TrajectoryStatus.TERMINATED,
        policy_version=record.policy_version,
        num_turns=len(record.turns),
        num_parse_errors=sum(bool(turn.parse_error) for turn in record.turns),
        score=record.score,
        reward=record.reward,
        terms=record.terms,
        last_frame=next((t.observation.sha256 for t in reversed(record.turns) if t.observation.sha256), ""),
        started_at=now,
        ended_at=now,
    )
    rows = TurnRecord.objects.bulk_create([turn_row(trajectory, turn) for turn in record.turns])
    entry = ReplayEntry.objects.create(
        team=team,
        trajectory=trajectory,
        family=trajectory.family,
        signature=signature_of(record.task.pk, rows),
        num_still=longest_still_run(rows),
        tags=[ASSUMED_TAG] if record.is_reward_assumed else [],
    )
    if keep_labels and record.label.get("verdict") in Verdict.values:
        tags = list(dict.fromkeys([*entry.tags, *(record.label.get("tags") or [])]))
        label_entry(
            entry=entry,
            user=user,
            verdict=record.label["verdict"],
            tags=[str(tag) for tag in tags],
            note=str(record.label.get("note") or ""),
        )
    return entry


def turn_row(trajectory: Trajectory, turn: Turn) -> TurnRecord:
    """A wire turn as a row."""
    now = timezone.now()
    return TurnRecord(
        trajectory=trajectory,
        index=turn.index,
        source=turn.source,
        frame=turn.observation.sha256,
        width=turn.observation.width,
        height=turn.observation.height,
        observation_text=storable(turn.observation.text),
        completion=storable(turn.completion and turn.completion.model_dump(mode="json")),
        action=storable(turn.action and turn.action.model_dump(mode="json", exclude_defaults=True)),
        dialect=turn.dialect,
        parse_error=storable(turn.parse_error or ""),
        action_error=storable(turn.action_error or ""),
        screen_changed=turn.screen_changed,
        terms=[term.model_dump(mode="json") for term in turn.terms],
        observed_at=now,
        completed_at=now,
        acted_at=now,
    )
