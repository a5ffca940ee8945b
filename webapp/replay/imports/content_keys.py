"""What a replay entry holds, as a digest: equal for one that was exported and comes back."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from django.db.models import Q

from training.contracts.types import Turn
from webapp.accounts.models import Team
from webapp.lib.statements.json_keys import text_of
from webapp.replay.automatic_checks import signature_of
from webapp.replay.models import ReplayEntry
from webapp.replay.services.imported_records import Record, turn_row
from webapp.replay.turn_edits import TurnEdit
from webapp.trajectories.models import Trajectory, TurnRecord

CHUNK = 200
"""Signatures looked up with one query."""


def signature_of_record(record: Record) -> str:
    """The same that its entry will have."""
    return signature_of(_task_of(record), [turn_row(Trajectory(), turn) for turn in record.turns])


def _task_of(record: Record) -> int | str:
    """Its id; the name of one that is not saved yet."""
    return record.task.pk or record.task.task_id


def _written(turn: Turn) -> str | None:
    """What the policy wrote; of a turn without words and with several actions, the earlier ones."""
    if turn.completion or not turn.earlier_actions:
        return turn.completion.text if turn.completion else None
    return "\n".join(action.model_dump_json(exclude_defaults=True) for action in turn.earlier_actions)


def key_of_record(record: Record) -> str:
    """Task, screens, actions and what the policy wrote, and which part of a split trajectory it is."""
    return _key(
        _task_of(record),
        record.label.get("part", 0),
        (
            (
                turn.observation.sha256,
                turn.action.model_dump(mode="json", exclude_defaults=True) if turn.action else None,
                _written(turn),
            )
            for turn in record.turns
        ),
    )


def known_keys(team: Team, records: Iterable[Record]) -> dict[str, int]:
    """Keys of the team's entries that could equal one of `records` -> entry id, the oldest of equals."""
    signatures = sorted({signature_of_record(record) for record in records})
    found: dict[str, int] = {}
    for start in range(0, len(signatures), CHUNK):
        entries = ReplayEntry.objects.filter(team=team, signature__in=signatures[start : start + CHUNK])
        turns: dict[int, list[tuple[int, Any]]] = defaultdict(list)
        rows = TurnRecord.objects.filter(trajectory__in=entries.values("trajectory"))
        has_content = Q(action__isnull=False) | Q(completion__isnull=False)
        rows = rows.filter(has_content).order_by("trajectory_id", "index")
        columns = ("trajectory_id", "index", "frame", "action", text_of("completion__text"))
        for trajectory_id, index, *content in rows.values_list(*columns).iterator():
            turns[trajectory_id].append((index, tuple(content)))
        for entry in entries.select_related("trajectory").order_by("-pk"):
            edit, own = TurnEdit.read(entry.edit), turns[entry.trajectory_id]
            kept = [content for index, content in own if edit.state_of(index) != "cut"]
            found[_key(entry.trajectory.task_id, entry.part, kept)] = entry.pk
    return found


def _key(task_id: int | str, part: int, turns: Iterable[tuple[str, Any, str | None]]) -> str:
    text = json.dumps([task_id, part, list(turns)], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
