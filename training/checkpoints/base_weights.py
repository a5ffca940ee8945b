"""The frozen weights below adapters: a checkpoint names them and their checksums instead of copying them.

    base.json: {"path": model folder, "sha256": {file of weights: digest}}

What counts is the content: a folder that was moved is the same base, one that was written anew is not.
"""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from training.model.load_by_block import FolderReader, has_safetensors

FILE = "base.json"
READERS = 4
"""Files that are read at once: one thread alone is slower than the disk."""


class BaseGone(ValueError):
    """Raised when the weights below a checkpoint's adapters are missing, or others than they were."""


class BaseWeights:
    """The weights of a model folder as they were when the run began."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seen = _looks(folder)
        self._sums: dict[str, str] | None = None
        self._reader: FolderReader | None = None

    @classmethod
    def of(cls, folder: Path) -> BaseWeights | None:
        """None for a folder whose weights cannot be read one by one: its checkpoints copy them."""
        return cls(folder) if has_safetensors(folder) else None

    def checksums(self) -> dict[str, str]:
        """sha256 by file; reads everything, once. Raises BaseGone when a file changed since the run began."""
        if self._sums is None:
            names = list(self._seen)
            with ThreadPoolExecutor(READERS, thread_name_prefix="checksum") as threads:
                digests = threads.map(_sha256, [self.folder / name for name in names])
                self._sums = dict(zip(names, digests, strict=True))
        self._require_untouched()
        return self._sums

    def read(self, name: str, shape: tuple[int, ...]) -> torch.Tensor:
        """One weight, fp32, as the trainer holds it. Raises ValueError where it is missing or misshapen."""
        self._reader = self._reader or FolderReader(self.folder)
        return self._reader(name, shape).to(torch.float32)

    def record(self, checkpoint: Path) -> None:
        """Write `base.json`. Raises BaseGone."""
        content = {"path": str(self.folder), "sha256": self.checksums()}
        (checkpoint / FILE).write_text(json.dumps(content, indent=2) + "\n")

    def _require_untouched(self) -> None:
        if (now := _looks(self.folder)) != self._seen:
            changed = sorted(
                name for name in now.keys() | self._seen.keys() if now.get(name) != self._seen.get(name)
            )
            raise BaseGone(
                f"model.path: {self.folder}: {', '.join(changed)} changed while adapters were trained on it; "
                "put the old file back and resume"
            )


def problem_of_base(checkpoint: Path, source: Path, base: BaseWeights | None) -> str:
    """Why the adapters of `checkpoint` cannot be put on the weights of `source`; "" when they can."""
    if not (checkpoint / FILE).is_file():
        return ""  # it holds all of its weights
    wanted = json.loads((checkpoint / FILE).read_text())
    advice = (
        f"Checkpoint {checkpoint.name} holds adapters only, trained on the weights of {wanted['path']}. "
        f"Put those back, or start a new experiment from {checkpoint / 'model'}, which holds them merged"
    )
    if base is None:
        return f"model.path: {source} has no *.safetensors. {advice}"
    found = base.checksums()
    for name, digest in wanted["sha256"].items():
        if name not in found:
            return f"model.path: {source} has no {name}. {advice}"
        if found[name] != digest:
            return f"model.path: {source / name} is another file than then. {advice}"
    if surplus := sorted(found.keys() - wanted["sha256"].keys()):
        return f"model.path: {source / surplus[0]} was not there then. {advice}"
    return ""


def _looks(folder: Path) -> dict[str, tuple[int, int]]:
    """File of weights -> size and time of its last change: what tells quickly that one was replaced."""
    stats = {path.name: path.stat() for path in sorted(folder.glob("*.safetensors"))}
    return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in stats.items()}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
