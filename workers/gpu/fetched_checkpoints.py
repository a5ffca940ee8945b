"""Checkpoints that another host wrote: brought to where this host's trainer looks for them.

From a folder that this host sees too, else from the place of copies with every file's sum compared.
"""

import logging
import secrets
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

from django.conf import settings

from training.contracts.trainer_state import COMPLETE
from webapp.lib.copies.folder_copy import CopyDamaged, Manifest, copied_sum, fetch_folder, read_manifest
from webapp.lib.copies.place import CopiesPlace, copies_place
from webapp.lib.disk_room import shortage_of_checkpoint
from webapp.worker_door.attempts import HeldAttempt, tell_start
from webapp.worker_door.checkpoint_copies_and_exports import (
    CheckpointElsewhere,
    SavedCheckpoint,
    checkpoints_to_resume,
    copied_checkpoint,
    go_on_from_older,
    why_not_here,
)
from workers.gpu.model_folder import ModelNotFound, resolve_model
from workers.reports.current import reports

log = logging.getLogger(__name__)
MODEL = "model"
WEIGHTS = ".safetensors"
MODEL_ENDINGS = (WEIGHTS, ".json", ".txt", ".jinja", ".model", ".md")
"""What is taken of another host's model: no pickles and no code, which would run here."""
KeepGoing = Callable[[], None]
"""Called between files; may raise."""


def bring_checkpoint(attempt: HeldAttempt, directory: Path, keep_going: KeepGoing) -> None:
    """Have the checkpoint in `directory` that the attempt goes on from, so that its trainer finds it.

    With a place of copies an older one is taken when the newest cannot be had, and the experiment's page says
    so. Raises CheckpointElsewhere, OSError.
    """
    saved = reports().request(checkpoints_to_resume, attempt.pk)
    if not saved:
        return
    newest, place = saved[0], copies_place()
    problems = []
    for checkpoint in saved if place else saved[:1]:
        folder = directory / Path(checkpoint.path).name
        if _is_here(checkpoint, folder):
            break
        try:
            _bring(attempt, checkpoint, folder, place, keep_going)
        except (FileNotFoundError, CopyDamaged) as error:
            problems.append(f"step {checkpoint.step}: {error}")
            continue
        _set_aside_later(folder)
        break
    else:
        raise CheckpointElsewhere(reports().request(why_not_here, attempt.pk, newest, "; ".join(problems)))
    if checkpoint is not newest:
        why = "; ".join(problems)
        log.warning("going on from step %d, not %d: %s", checkpoint.step, newest.step, why)
        _set_aside_later(folder)
        reports().request(go_on_from_older, attempt.pk, checkpoint, newest, why)


def bring_model(path: str, seed: int = 0) -> str:
    """As `resolve_model`; a checkpoint of another host is fetched. Raises ModelNotFound, OSError."""
    try:
        return resolve_model(path, seed)
    except ModelNotFound as missing:
        try:
            fetched = fetch_model(path)
        except CopyDamaged as error:
            raise ModelNotFound(f"{missing}; its copy cannot be used: {error}") from error
        if fetched is None:
            raise
        return str(fetched / MODEL)


def is_copied(path: str) -> bool:
    """Whether `path` is, or is within, a checkpoint that `fetch_model` can bring."""
    return copies_place() is not None and reports().request(copied_checkpoint, path) is not None


def fetch_model(path: str) -> Path | None:
    """A folder with the model of another host's checkpoint `path`, as in that; None when there is no copy.

    It stays, for the next that asks. Raises CopyDamaged, OSError.
    """
    place, found = copies_place(), reports().request(copied_checkpoint, path)
    if place is None or found is None:
        return None
    folder = Path(settings.DATA_DIR) / "models" / f"checkpoint-{found.pk}-{found.copy_sha256[:12]}"
    if not folder.is_dir():
        everything = read_manifest(place, found.copy_prefix, found.copy_sha256).files.items()
        manifest = Manifest(files={name: file for name, file in everything if _is_of_model(name)})
        if not any(name.endswith(WEIGHTS) for name in manifest.files):
            raise CopyDamaged(f"it has no model/*{WEIGHTS}: other weights are not taken from copies")
        _require_room(folder, manifest)
        fetch_folder(place, found.copy_prefix, manifest, folder)
    return folder.resolve()


def _is_of_model(name: str) -> bool:
    return name == COMPLETE or (name.startswith(f"{MODEL}/") and name.endswith(MODEL_ENDINGS))


def _is_here(checkpoint: SavedCheckpoint, folder: Path) -> bool:
    """Whether `folder` is that checkpoint, and not one of the same name that was trained anew elsewhere."""
    if not (folder / COMPLETE).is_file():
        return False
    if checkpoint.is_copied:
        return copied_sum(folder) == checkpoint.copy_sha256
    return str(folder) == checkpoint.path


def _bring(
    attempt: HeldAttempt,
    checkpoint: SavedCheckpoint,
    folder: Path,
    place: CopiesPlace | None,
    keep_going: KeepGoing,
) -> None:
    """Raises FileNotFoundError when it can be had nowhere, CopyDamaged, OSError."""
    source = Path(checkpoint.path)
    if source != folder and _is_here(checkpoint, source):
        _replace(folder, lambda draft: _copy_folder(source, draft, keep_going))
        return
    if place is None or not checkpoint.copy_sha256:
        raise FileNotFoundError("it has no copy")
    manifest = read_manifest(place, checkpoint.copy_prefix, checkpoint.copy_sha256)
    _require_room(folder, manifest)
    message = f"Fetching the checkpoint of step {checkpoint.step} ({manifest.num_bytes / 1e6:.0f} MB)."
    reports().report(tell_start, attempt.pk, message)
    fetch = partial(fetch_folder, place, checkpoint.copy_prefix, manifest)
    _replace(folder, partial(fetch, mark=checkpoint.copy_sha256, keep_going=keep_going))
    log.info("fetched the checkpoint of step %d, %d bytes", checkpoint.step, manifest.num_bytes)


def _copy_folder(source: Path, target: Path, keep_going: KeepGoing) -> None:
    def copy(one: str, other: str) -> None:
        keep_going()
        shutil.copyfile(one, other)

    shutil.copytree(source, target, copy_function=copy)


def _replace(folder: Path, make: Callable[[Path], None]) -> None:
    """Put what `make` writes in the place of what lies there."""
    for leftover in folder.parent.glob(f".{folder.name}.*"):
        shutil.rmtree(leftover, ignore_errors=True)
    # Behind a dot: a trainer takes no draft for a checkpoint.
    draft = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    try:
        make(draft)
        if folder.exists():
            shutil.rmtree(folder)
        draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _set_aside_later(folder: Path) -> None:
    """No attempt resumes from what this host wrote after `folder`, before others went on from that: those
    stay where they are, but are no longer complete."""
    for marker in folder.parent.glob(f"[0-9]*/{COMPLETE}"):
        if marker.parent.name > folder.name:
            log.warning("%s belongs to steps that are trained anew", marker.parent)
            marker.unlink()


def _require_room(folder: Path, manifest: Manifest) -> None:
    if shortage := shortage_of_checkpoint(folder, manifest.num_bytes):
        raise OSError(str(shortage))
