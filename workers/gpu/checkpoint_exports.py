"""Exports of checkpoints: a thread of the gpu worker runs `training.checkpoints.export` beside the training.

claim -> process of its own, at low priority -> progress from the size of its folder -> close the row
"""

import json
import logging
import os
import shutil
import sys
import threading
from pathlib import Path

from django.conf import settings

from training.contracts.trainer_exit import ExitCode
from webapp.lib.copies.folder_copy import CopyDamaged
from webapp.lib.copies.place import copies_place
from webapp.worker_door.checkpoint_copies_and_exports import (
    HeldExport,
    card_of,
    claim_export,
    confirm_removal,
    fail_export,
    finish_export,
    removable_exports,
    report_export,
    waiting_exports,
)
from workers import identity
from workers.gpu.child_processes import start_child
from workers.gpu.fetched_checkpoints import fetch_model, is_copied
from workers.reports.current import reports
from workers.reports.repeated_step import RepeatedStep

log = logging.getLogger(__name__)
LOOK_EVERY_S = 2.0
REPORT_EVERY_S = 1.0
GRACE_S = 5.0
POLITELY = ("nice", "-n", "10")
"""The training goes first."""


def start(stopping: threading.Event) -> None:
    """Look for work until `stopping`."""

    def look() -> None:
        remove_unwanted()
        export_next(stopping)

    RepeatedStep("exports", look, LOOK_EVERY_S, stopping=stopping).start()


def exports_folder() -> Path:
    """Where exports of this host lie."""
    return Path(settings.DATA_DIR) / "exports"


def export_next(stopping: threading.Event) -> HeldExport | None:
    """Write one waiting export; None when there is none."""
    me = identity.current()
    for waiting in reports().request(waiting_exports, me.name):
        if not (waiting.is_for_anyone or Path(waiting.checkpoint).is_dir() or is_copied(waiting.checkpoint)):
            continue
        export = reports().request(claim_export, waiting.pk, me.name, me.host, str(exports_folder()))
        if export is not None:
            _write(export, stopping)
            return export
    return None


def _write(export: HeldExport, stopping: threading.Event) -> None:
    try:
        source = _source(export)
    except (CopyDamaged, OSError) as error:
        reports().request(fail_export, export.pk, f"the checkpoint could not be fetched: {error}")
        return
    output, log_path = Path(export.path), exports_folder() / f"export-{export.pk}.log"
    log_path.unlink(missing_ok=True)
    card = exports_folder() / f"export-{export.pk}.md"
    card.parent.mkdir(parents=True, exist_ok=True)
    card.write_text(reports().request(card_of, export.pk))
    command = [
        *(*POLITELY, sys.executable, "-m", "training.checkpoints.export"),
        *(str(source), str(output)),
        *("--dtype", export.dtype, "--card", str(card)),
    ]
    # The GPUs belong to the trainer and the engine.
    child = start_child("export", command, log_path=log_path, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    try:
        while (code := child.exit_code()) is None:
            if stopping.wait(REPORT_EVERY_S):
                return  # the row's heartbeat ends: another worker, or the next start, takes it up
            _report(export, output, log_path)
    finally:
        child.stop(GRACE_S)
        card.unlink(missing_ok=True)
    if code == 0:
        reports().request(finish_export, export.pk, _folder_bytes(output))
        log_path.unlink(missing_ok=True)
    else:
        lines = child.tail(40).strip().splitlines() or ["it left no message"]
        reason = (
            lines[-1]
            if code == ExitCode.WRONG_SETTINGS
            else f"the export ended with code {code}: {lines[-1]}"
        )
        reports().request(fail_export, export.pk, reason)


def _source(export: HeldExport) -> Path:
    """The checkpoint here, or what is needed of another host's. Raises CopyDamaged, OSError."""
    folder = Path(export.checkpoint)
    return folder if folder.is_dir() else fetch_model(str(folder)) or folder


def _report(export: HeldExport, output: Path, log_path: Path) -> None:
    total = _announced_bytes(log_path)
    done = _folder_bytes(output.with_name(output.name + ".tmp")) or _folder_bytes(output)
    reports().request(report_export, export.pk, min(done, total), total)


def _announced_bytes(log_path: Path) -> int:
    """What the export said is coming; 0 before it did."""
    for line in log_path.read_text(errors="replace").splitlines():
        if line.startswith('{"total_bytes"'):
            return int(json.loads(line)["total_bytes"])
    return 0


def _folder_bytes(folder: Path) -> int:
    try:
        return sum(path.stat().st_size for path in folder.iterdir())
    except FileNotFoundError:  # not there yet, or renamed between the two calls
        return 0


def remove_unwanted() -> None:
    """Delete the exports of this host that people removed on the page."""
    for export in reports().request(removable_exports, identity.current().host):
        folder = Path(export.path)
        if folder.parent != exports_folder():
            log.error("export %s lies outside of %s; its files stay", export.pk, exports_folder())
        else:
            shutil.rmtree(folder, ignore_errors=True)
        if (place := copies_place()) is not None:
            place.remove(export.copy_prefix)
        reports().request(confirm_removal, export.pk)
