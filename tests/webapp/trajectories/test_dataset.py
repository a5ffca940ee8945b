"""Shards of trajectories: what was recorded, each once, and open to `datasets`."""

import json
from io import BytesIO

import pyarrow.parquet as pq
import pytest

from testing.factories import make_experiment, make_group, make_trajectory
from webapp.trajectories.dataset.shards import shard_pieces
from webapp.trajectories.frame_files import read_frame
from webapp.trajectories.models import Trajectory

pytestmark = pytest.mark.django_db


@pytest.fixture
def rows():
    experiment = make_experiment()
    group = make_group(experiment=experiment, size=5)
    for member in range(5):
        make_trajectory(group=group, member=member, turns=3)
    return Trajectory.objects.filter(experiment=experiment)


def test_a_row_holds_what_was_recorded(rows):
    table = pq.read_table(BytesIO(b"".join(shard_pieces(rows)))).to_pylist()
    for row, found in zip(rows.order_by("pk"), table, strict=True):
        assert (found["trajectory_id"], found["task_id"], found["reward"]) == (row.pk, row.task.task_id, 1.0)
        for turn, written in zip(row.turns.all(), found["turns"], strict=True):
            assert json.loads(written["action"]) == turn.action
            assert (written["completion"], written["token_ids"]) == (turn.completion["text"], [1, 2, 3])
            assert found["images"][written["image"]]["bytes"] == read_frame(turn.frame, "png")


def test_shards_hold_each_once(rows):
    shards = [pq.read_table(BytesIO(b"".join(shard_pieces(rows, shard, 3)))) for shard in range(3)]
    ids = [pk for shard in shards for pk in shard["trajectory_id"].to_pylist()]
    assert sorted(ids) == sorted(rows.values_list("pk", flat=True))


def test_datasets_opens_them_with_their_screens(rows, tmp_path):
    datasets = pytest.importorskip("datasets")
    for shard in range(2):
        file = tmp_path / f"all-{shard:05d}-of-00002.parquet"
        file.write_bytes(b"".join(shard_pieces(rows, shard, 2)))
    found = datasets.load_dataset(
        "parquet", data_files=str(tmp_path / "*.parquet"), split="train", streaming=True
    )
    first = next(iter(found))
    turn = rows.order_by("pk").first().turns.first()
    assert first["images"][0].size == (turn.width, turn.height)
