"""Shards as torch.distributed.checkpoint writes them, read without running what is in them.

Their list of tensors is a pickle, and a hostile host could have written the checkpoint that another one
resumes from: only the classes of such a list are made of it. Objects other than tensors are refused, since
torch unpickles them without limits.
"""

import pickle
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.metadata import (
    _MEM_FORMAT_ENCODING,
    Metadata,
    TensorStorageMetadata,
)

LISTS = "torch.distributed.checkpoint"
LISTED = frozenset((
    "pathlib.PosixPath", "torch.Size", "torch.serialization._get_layout", f"{LISTS}.filesystem._StorageInfo",
    *(f"{LISTS}.metadata.{name}" for name in (
        "ChunkStorageMetadata", "Metadata", "MetadataIndex", "StorageMeta", "TensorProperties",
        "TensorStorageMetadata", "_MEM_FORMAT_ENCODING",
    )),
))  # fmt: skip
"""What a list of tensors is made of, beside the types of numbers (torch.float32)."""


class UnsafeShards(ValueError):
    """Raised for a list of tensors that holds anything else."""


class ShardReader(dcp.FileSystemReader):
    """See the module."""

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Whole shape of every saved tensor, by name. Raises UnsafeShards."""
        found = self.read_metadata().state_dict_metadata
        return {
            name: tuple(one.size) for name, one in found.items() if isinstance(one, TensorStorageMetadata)
        }

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        with self.fs.create_stream(self._get_metadata_path(kwargs.get("rank")), "rb") as file:
            metadata = _ListUnpickler(file).load()
        if not isinstance(metadata, Metadata):
            raise UnsafeShards(f"{self.path}: .metadata is no list of tensors")
        for place in (metadata.storage_data or {}).values():
            if "/" in place.relative_path:
                raise UnsafeShards(f"{self.path}: {place.relative_path} lies outside of it")
        if metadata.storage_meta is not None:
            metadata.storage_meta.load_id = self.load_id
        return metadata


def _member(kind: object, name: str) -> _MEM_FORMAT_ENCODING:
    """What Python 3.11.0 to 3.11.3, Debian 12's among them, write `getattr` for."""
    if kind is not _MEM_FORMAT_ENCODING or name not in _MEM_FORMAT_ENCODING.__members__:
        raise UnsafeShards(f"a checkpoint's list of tensors may not hold an attribute {name} of {kind}")
    return _MEM_FORMAT_ENCODING[name]


class _ListUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("builtins", "getattr"):
            return _member
        is_dtype = module == "torch" and isinstance(getattr(torch, name, None), torch.dtype)
        if not is_dtype and f"{module}.{name}" not in LISTED:
            raise UnsafeShards(f"a checkpoint's list of tensors may not hold {module}.{name}")
        return super().find_class(module, name)
