"""An offline run, read back from its file."""

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from PIL import Image

from testing.tracked_experiment import caption_of
from webapp.trajectories.pictures import strips

pytestmark = [pytest.mark.db, pytest.mark.django_db]


def wandb_records(file: Path) -> Iterator[Any]:
    """The records of a run's file: blocks of 32 KiB with pieces (checksum, length, kind), after a head."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, at, found = file.read_bytes(), 7, b""
    while at + 7 <= len(data):
        if (room := 32768 - at % 32768) < 7:
            at += room
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        found += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last piece
            yield Record.FromString(found)
            found = b""


def test_it_reads_back_what_the_experiment_measured(experiment, tmp_path):
    for _ in range(2):
        call_command("track", str(experiment.pk), "--to", f"wandb={tmp_path}")
    [file] = tmp_path.glob(f"wandb/offline-run-*-experiment-{experiment.pk}/*.wandb")
    records = list(wandb_records(file))
    rows = [
        {item.key or "|".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
        for record in records
        if record.HasField("history")
    ]
    success = [(row["step"], row["rollout/success"]) for row in rows if "rollout/success" in row]
    assert success == [(0, 0.0), (1, 0.25), (2, 0.9), (3, 1.0)]
    assert [row["evaluation/greedy/success"] for row in rows if "evaluation/greedy/success" in row] == [0.75]
    [shown] = [row for row in rows if "samples/greedy/1|path" in row]
    assert (shown["step"], shown["samples/greedy/1|caption"]) == (3, caption_of(experiment))
    assert Image.open(file.parent / "files" / shown["samples/greedy/1|path"]).height == strips.HEIGHT
    [run] = [record.run for record in records if record.HasField("run")][:1]
    assert run.display_name == f"#{experiment.pk} {experiment.name}"
    assert "algorithm.group_size" in {item.key or item.nested_key[0] for item in run.config.update}
    assert [record.exit.exit_code for record in records if record.HasField("exit")] == [0]


def test_an_address_that_cannot_be_used_is_named(experiment):
    with pytest.raises(CommandError, match="wandb: /proc/here cannot be written"):
        call_command("track", str(experiment.pk), "--to", "wandb=/proc/here")
