"""A hostile host's checkpoint runs nothing on the host that resumes from it."""

from __future__ import annotations

import os
import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.metadata import (
    _MEM_FORMAT_ENCODING,
    BytesStorageMetadata,
    Metadata,
    MetadataIndex,
)

from training.checkpoints.shard_reader import ShardReader, UnsafeShards

VALUE = torch.arange(6.0).reshape(2, 3)


class Command:
    """Unpickled, it makes a file."""

    def __init__(self, made: Path) -> None:
        self.made = made

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.made),)


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    folder = tmp_path / "weights"
    others = {"b": VALUE.to(torch.bfloat16), "c": torch.tensor(1.0), "d": torch.ones(3, dtype=torch.int64)}
    dcp.save({"a": VALUE, **others}, checkpoint_id=folder, no_dist=True)
    return folder


def loaded(folder: Path, **reader: Any) -> torch.Tensor:
    space = {"a": torch.zeros(2, 3)}
    dcp.load(space, **reader, no_dist=True)
    return space["a"]


def rewrite(shards: Path, change: Any) -> None:
    """The list of tensors with a change."""
    file = shards / ".metadata"
    metadata: Metadata = pickle.loads(file.read_bytes())
    file.write_bytes(pickle.dumps(change(metadata) or metadata))


def test_shards_of_our_own_are_read_whole(shards: Path) -> None:
    assert loaded(shards, storage_reader=ShardReader(shards)).equal(VALUE)
    assert ShardReader(shards).shapes() == {"a": (2, 3), "b": (2, 3), "c": (), "d": (3,)}


def attribute(kind: Any, name: str) -> Any:
    """Unpickled by `getattr(kind, name)`."""

    class Written:
        def __reduce__(self) -> tuple[Any, ...]:
            return getattr, (kind, name)

    return Written()


def test_a_list_that_debian_12s_python_wrote_is_read(shards: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:  # as the enum of Python 3.11.2 has it
        patch.setattr(_MEM_FORMAT_ENCODING, "__reduce_ex__", lambda one, _: (getattr, (type(one), one.name)))
        rewrite(shards, lambda _: None)
    assert b"getattr" in (shards / ".metadata").read_bytes()
    assert loaded(shards, storage_reader=ShardReader(shards)).equal(VALUE)


@pytest.mark.parametrize("kind", [Metadata, _MEM_FORMAT_ENCODING])
def test_no_other_attribute_is_read(shards: Path, kind: Any) -> None:
    rewrite(shards, lambda found: setattr(found, "planner_data", attribute(kind, "__init__")))
    with pytest.raises(UnsafeShards, match="an attribute"):
        ShardReader(shards).shapes()


def loaded_or_refused(shards: Path, is_defended: bool, why: str) -> None:
    """With our reader it is refused; torch's own reads on until the harm is done."""
    if is_defended:
        with pytest.raises(CheckpointException, match=why):
            loaded(shards, storage_reader=ShardReader(shards))
    else:
        with suppress(CheckpointException):
            loaded(shards, checkpoint_id=shards)


@pytest.mark.parametrize("is_defended", [True, False])
def test_code_in_the_list_of_tensors_is_not_run(shards: Path, tmp_path: Path, is_defended: bool) -> None:
    made = tmp_path / "made"
    rewrite(shards, lambda metadata: setattr(metadata, "planner_data", Command(made)))
    loaded_or_refused(shards, is_defended, "may not hold posix.mkdir")
    assert made.exists() is not is_defended


@pytest.mark.parametrize("is_defended", [True, False])
def test_an_object_in_the_place_of_a_tensor_is_not_unpickled(shards: Path, tmp_path: Path, is_defended: bool):
    made = tmp_path / "made"
    torch.save(Command(made), shards / "evil")

    def swap(metadata: Metadata) -> None:
        metadata.state_dict_metadata["a"] = BytesStorageMetadata()
        place = next(where for index, where in metadata.storage_data.items() if index.fqn == "a")
        place.relative_path, place.offset, place.length = "evil", 0, (shards / "evil").stat().st_size
        metadata.storage_data[MetadataIndex("a")] = place

    rewrite(shards, swap)
    loaded_or_refused(shards, is_defended, "may not hold torch.*BytesStorageMetadata")
    assert made.exists() is not is_defended


def test_a_tensor_of_another_folder_is_not_read(shards: Path) -> None:
    def lead_out(metadata: Metadata) -> None:
        for place in metadata.storage_data.values():
            place.relative_path = f"../weights/{place.relative_path}"

    rewrite(shards, lead_out)
    assert loaded(shards, checkpoint_id=shards).equal(VALUE)
    with pytest.raises(UnsafeShards, match="lies outside"):
        ShardReader(shards).shapes()


def test_a_list_of_another_kind_is_refused(shards: Path) -> None:
    rewrite(shards, lambda _: {"a": 1})
    with pytest.raises(UnsafeShards, match="no list of tensors"):
        ShardReader(shards).shapes()
