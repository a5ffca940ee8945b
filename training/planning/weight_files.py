"""Which files of a model folder hold its weights, and what their headers say; read without torch.

Source of the layout: the safetensors format. Eight bytes say how long the header is; the header says where
each tensor lies behind it.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.planning.model_json import read_object

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json")
MAX_HEADER_BYTES = 100_000_000
POINTER = b"version https://git-lfs"
"""How a file begins that Git left in place of a large one."""
BYTES = {
    **dict.fromkeys(("F64", "I64", "U64"), 8),
    **dict.fromkeys(("F32", "I32", "U32"), 4),
    **dict.fromkeys(("F16", "BF16", "I16", "U16"), 2),
    **dict.fromkeys(("F8_E4M3", "F8_E5M2", "I8", "U8", "BOOL"), 1),
}
"""Of a number, by its type; safetensors knows rarer ones, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTensor:
    """A tensor of a file, as the file's header has it."""

    file: Path
    dtype: str
    """Such as BF16."""
    shape: tuple[int, ...]
    start: int
    """Its first byte in the file."""
    stop: int


def weight_files(folder: str | Path) -> list[Path]:
    """The safetensors that transformers reads, whatever else lies there; none in a folder without any.

    Raises ValueError where the index cannot be read or names a file that is not there.
    """
    folder = Path(folder)
    if (folder / SINGLE).is_file():
        return [folder / SINGLE]
    index = folder / INDEX
    if not index.is_file():
        return []
    places = read_object(index).get("weight_map")
    if not isinstance(places, dict) or not all(_is_name(name) for name in places.values()):
        raise ValueError(f"{index}: weight_map does not say which file holds which weight")
    names = sorted(set(places.values()))
    if lacking := [name for name in names if not (folder / name).is_file()]:
        more = f" and {len(lacking) - 3} more" if len(lacking) > 3 else ""
        raise ValueError(
            f"{folder} lacks {', '.join(lacking[:3])}{more}, which {INDEX} names: download the model again"
        )
    return [folder / name for name in names]


def _is_name(value: object) -> bool:
    """Of a file in the folder itself."""
    return isinstance(value, str) and value == Path(value).name


def stored_tensors(folder: str | Path) -> dict[str, StoredTensor]:
    """All tensors of a folder's safetensors by name. Raises ValueError and OSError."""
    return {name: tensor for file in weight_files(folder) for name, tensor in read_header(file).items()}


def read_header(file: Path) -> dict[str, StoredTensor]:
    """Raises ValueError for a file that is no safetensors file, or not a whole one."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        first = stream.read(8)
        if (first + stream.read(len(POINTER) - 8)) == POINTER:
            raise ValueError(f"{file} is only Git's pointer to the weights: run `git lfs pull` in its folder")
        length = int.from_bytes(first, "little")
        if len(first) < 8 or length > min(MAX_HEADER_BYTES, size - 8):
            raise ValueError(f"{file} is not a safetensors file, or was cut short: download it again")
        stream.seek(8)
        text = stream.read(length)
    try:
        header: dict[str, Any] = json.loads(text)
        tensors = {
            name: StoredTensor(
                file=file,
                dtype=str(entry["dtype"]),
                shape=tuple(int(side) for side in entry["shape"]),
                start=8 + length + int(entry["data_offsets"][0]),
                stop=8 + length + int(entry["data_offsets"][1]),
            )
            for name, entry in header.items()
            if name != "__metadata__"
        }
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise ValueError(f"{file} is not a safetensors file: its header cannot be read") from error
    end = 8 + length
    for tensor in sorted(tensors.values(), key=lambda tensor: (tensor.start, tensor.stop)):
        if tensor.start != end or tensor.stop < end:
            raise ValueError(f"{file} has tensors that overlap or leave a gap: download it again")
        end = tensor.stop
    if end != size:
        raise ValueError(f"{file} has {size} bytes, and its header wants {end}: download it again")
    for name, tensor in tensors.items():
        _check_size(name, tensor)
    return tensors


def _check_size(name: str, tensor: StoredTensor) -> None:
    """Raises ValueError where its bytes are not those of its shape."""
    has = tensor.stop - tensor.start
    wants = math.prod(tensor.shape) * BYTES.get(tensor.dtype, 0)
    if tensor.dtype in BYTES and has != wants:
        raise ValueError(
            f"{tensor.file} has {has} bytes of {name}, and {tensor.dtype} of {tensor.shape} is {wants}: "
            "download it again"
        )
