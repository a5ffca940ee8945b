"""Trajectories as Parquet shards that Hugging Face's `datasets` opens with their screenshots.

One row a trajectory. `images` are its different screens in the order in which they came; `turns` name theirs
by place in that list (null: no screen), and hold what was generated with tokens and logprobs. Actions, terms
and a turn's own terms are JSON text. Shard k of n holds the trajectories whose id leaves k divided by n.
"""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from django.db.models import F, QuerySet

from webapp.trajectories.dataset.parquet_stream import (
    GROUP,
    IMAGE,
    list_feature,
    parquet_pieces,
    schema_of,
    value_feature,
)
from webapp.trajectories.frame_files import read_frame
from webapp.trajectories.models import Trajectory, TurnRecord

MAX_SHARDS = 1000
TURN = {
    "index": "int64",
    "source": "string",
    "image": "int64",
    "text": "string",
    "completion": "string",
    "thought": "string",
    "action": "string",
    "earlier_actions": "string",
    "parse_error": "string",
    "action_error": "string",
    "is_context": "bool",
}
LISTS = {"token_ids": "int64", "behaviour_logprobs": "float64"}
PLAIN = {
    "trajectory_id": "int64",
    "experiment_id": "int64",
    "group_id": "int64",
    "task_id": "string",
    "instruction": "string",
    "family": "string",
    "purpose": "string",
    "source": "string",
    "status": "string",
    "limit": "string",
    "step": "int64",
    "policy_version": "int64",
    "score": "float64",
    "reward": "float64",
    "advantage": "float64",
    "error": "string",
    "terms": "string",
}
KINDS = {"int64": pa.int64(), "float64": pa.float64(), "string": pa.string(), "bool": pa.bool_()}
TURN_STRUCT = pa.struct(
    [
        *((name, KINDS[kind]) for name, kind in TURN.items()),
        *((name, pa.list_(KINDS[kind])) for name, kind in LISTS.items()),
    ]
)
COLUMNS = {
    **{name: KINDS[kind] for name, kind in PLAIN.items()},
    "images": pa.list_(IMAGE),
    "turns": pa.list_(TURN_STRUCT),
}
FEATURES = {
    **{name: value_feature(kind) for name, kind in PLAIN.items()},
    "images": list_feature({"_type": "Image"}),
    "turns": list_feature(
        {
            **{name: value_feature(kind) for name, kind in TURN.items()},
            **{name: list_feature(value_feature(kind)) for name, kind in LISTS.items()},
        }
    ),
}
SCHEMA = schema_of(COLUMNS, FEATURES)


def shard_pieces(rows: QuerySet[Trajectory], shard: int = 0, num_shards: int = 1) -> Iterator[bytes]:
    """One shard of these trajectories, by id, piece by piece."""
    part = rows.annotate(left=F("pk") % num_shards).filter(left=shard).order_by("pk")
    return parquet_pieces(map(row_of, _whole(list(part.values_list("pk", flat=True)))), SCHEMA)


def _whole(ids: list[int]) -> Iterator[Trajectory]:
    """With task and turns, as many at once as a row group holds; what was deleted meanwhile is left out."""
    rows = Trajectory.objects.select_related("task").prefetch_related("turns")
    for start in range(0, len(ids), GROUP):
        found = rows.in_bulk(ids[start : start + GROUP])
        yield from (found[pk] for pk in sorted(found))


def row_of(row: Trajectory) -> dict[str, Any]:
    """One trajectory as a table's row."""
    turns = list(row.turns.all())
    screens = list(dict.fromkeys(turn.frame for turn in turns if turn.frame))
    if row.final_frame and row.final_frame not in screens:
        screens.append(row.final_frame)
    places = {sha: place for place, sha in enumerate(screens)}
    own = ("task_id", "instruction", "trajectory_id", "terms")
    return {
        **{name: getattr(row, name) for name in PLAIN if name not in own},
        "trajectory_id": row.pk,
        "task_id": row.task.task_id,
        "instruction": row.task.instruction,
        "terms": json.dumps(row.terms, ensure_ascii=False),
        "images": [{"bytes": read_frame(sha, "png"), "path": f"{sha}.png"} for sha in screens],
        "turns": [_turn(turn, places) for turn in turns],
    }


def _turn(turn: TurnRecord, places: dict[str, int]) -> dict[str, Any]:
    said = turn.completion or {}
    return {
        "index": turn.index,
        "source": turn.source,
        "image": places.get(turn.frame),
        "text": turn.observation_text,
        "completion": said.get("text"),
        "thought": turn.thought,
        "action": json.dumps(turn.action, ensure_ascii=False) if turn.action else None,
        "earlier_actions": json.dumps(turn.earlier_actions, ensure_ascii=False)
        if turn.earlier_actions
        else None,
        "parse_error": turn.parse_error,
        "action_error": turn.action_error,
        "is_context": turn.is_context,
        **{name: list(said.get(name) or ()) for name in LISTS},
    }
