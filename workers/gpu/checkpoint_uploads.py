"""Copies of this host's checkpoints and exports for other hosts: a thread of the gpu worker uploads them as
they are reported, the newest first, and removes the copies of checkpoints that were deleted."""

import fcntl
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from training.contracts.trainer_state import COMPLETE
from webapp.lib.copies.folder_copy import upload_folder
from webapp.lib.copies.place import CopiesPlace, copies_place
from webapp.worker_door.checkpoint_copies_and_exports import (
    forget_copy,
    record_copy,
    record_export_copy,
    uncopied_exports,
    unneeded_copies,
    wanting_copies,
)
from workers import identity
from workers.reports.current import reports
from workers.reports.repeated_step import RepeatedStep

log = logging.getLogger(__name__)
LOOK_EVERY_S = 2.0


def start(stopping: threading.Event) -> None:
    """Look for work until `stopping`; nothing without a place of copies."""
    place = copies_place()
    if place is not None:
        look = partial(_look, place)
        RepeatedStep("copies", look, LOOK_EVERY_S, stopping=stopping).start()


def _look(place: CopiesPlace) -> None:
    if not upload_waiting(place):
        upload_exports(place)
    remove_unneeded(place)


def upload_waiting(place: CopiesPlace) -> bool:
    """Copy the newest checkpoint of this host that waits for it; False without one. Raises OSError."""
    for checkpoint in reports().request(wanting_copies):
        folder = Path(checkpoint.path)
        if not (folder / COMPLETE).is_file():
            continue  # another host's
        with _alone(folder) as is_mine:
            if not is_mine:
                continue
            try:
                copy_sha256 = upload_folder(place, checkpoint.copy_prefix, folder)
            except FileNotFoundError:
                if folder.is_dir():
                    raise
                continue  # deleted meanwhile, as old ones are
            reports().request(record_copy, checkpoint.pk, copy_sha256)
        log.info("copied the checkpoint of step %d", checkpoint.step)
        return True
    return False


def upload_exports(place: CopiesPlace) -> None:
    """Copy the exports of this host that others cannot have yet. Raises OSError."""
    for export in reports().request(uncopied_exports, identity.current().host):
        if Path(export.path).is_dir():
            copy_sha256 = upload_folder(place, export.copy_prefix, Path(export.path))
            reports().request(record_export_copy, export.pk, copy_sha256)


def remove_unneeded(place: CopiesPlace) -> None:
    """Delete the copies of checkpoints that were deleted."""
    for checkpoint in reports().request(unneeded_copies):
        place.remove(checkpoint.copy_prefix)
        reports().request(forget_copy, checkpoint.pk)


@contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """False while another worker of this host copies the folder."""
    with (folder / COMPLETE).open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
