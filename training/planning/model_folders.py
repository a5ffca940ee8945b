"""Where the weights lie that a model field names, on this machine.

    first-desk               a shipped checkpoint
    /data/qwen, qwen         a folder, or one below the data folder; of a checkpoint, its folder `model`
    ORG/NAME@REVISION        a model of the Hugging Face hub, from this machine's cache of it

A branch or tag of the hub is looked up once; from then on the experiment names the commit. Nothing is
downloaded here: weights of many gigabytes come when a person runs the command that the errors name.
"""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

HUB_ID = re.compile(r"(?P<repository>\w[\w.-]*/[\w.-]+)@(?P<revision>\w[\w./-]*)")
COMMIT = re.compile(r"[0-9a-f]{40}")
TINY_RANDOM = "tiny-random"
"""The gpu worker makes it on demand, from the experiment's seed: it holds nothing but random numbers."""


class NotInHubCache(LookupError):
    """Raised when this machine's cache of the hub lacks a model, or files of it; says how to fill it."""


@dataclass(frozen=True, slots=True)
class HubModel:
    """A model of the hub at one revision: a branch, a tag or a commit."""

    repository: str
    revision: str

    def __str__(self) -> str:
        return f"{self.repository}@{self.revision}"


def hub_model(path: str) -> HubModel | None:
    """What a model field names of the hub; None for everything else."""
    match = HUB_ID.fullmatch(path.strip())
    return HubModel(match["repository"], match["revision"]) if match else None


def cached_snapshot(model: HubModel) -> Path:
    """The folder of the model in the hub's cache, named by its commit. Raises NotInHubCache."""
    # Imported here: it takes a while, and most experiments name a folder.
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(model.repository, revision=model.revision, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError) as error:
        raise NotInHubCache(_how_to_fill(model, f"not in {constants.HF_HUB_CACHE}")) from error
    if not (folder / "config.json").is_file():
        raise NotInHubCache(_how_to_fill(model, f"{folder} has no config.json"))
    return folder


def _how_to_fill(model: HubModel, what: str) -> str:
    return (
        f"{model}: {what}. Fill the cache of this machine with: "
        f"hf download {model.repository} --revision {model.revision}"
    )


def pinned(path: str) -> str:
    """`path` with the commit instead of a branch or tag of the hub, where this machine's cache knows it."""
    model = hub_model(path)
    if model is None or COMMIT.fullmatch(model.revision):
        return path
    try:
        return f"{model.repository}@{cached_snapshot(model).name}"
    except NotInHubCache:
        return path


def candidates_of(path: str, *, shipped: Path, data: Path) -> list[Path]:
    """Folders that a model field may mean, the first one that is there."""
    return [shipped / path, Path(path).expanduser(), data / path]


def find_folder(path: str, *, shipped: Path, data: Path) -> Path | None:
    """The checkpoint folder that a model field names; None if this machine has none."""
    if not path.strip():
        return None
    if (found := _first_with_config(candidates_of(path, shipped=shipped, data=data))) is not None:
        return found
    model = hub_model(path)
    try:
        # Not resolved: the name of a snapshot is its commit.
        return cached_snapshot(model) if model else None
    except NotInHubCache:
        return None


def _first_with_config(candidates: Iterable[Path]) -> Path | None:
    for candidate in candidates:
        for folder in (candidate, candidate / "model"):  # a checkpoint holds its model in a folder of its own
            if os.path.isfile(folder / "config.json"):  # False also where this process may not look
                return folder.resolve()
    return None
