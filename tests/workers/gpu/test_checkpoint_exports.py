"""Exports by the gpu worker: a real process, a real folder that transformers loads, clear ends."""

import shutil
import subprocess
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
from django.utils import timezone
from transformers import AutoModelForImageTextToText

from testing.factories import make_experiment, make_team
from training.content.recipes.tiny.make_checkpoint import make_tiny
from webapp.checkpoints.services import exports
from webapp.experiments.models import CheckpointExport, CheckpointRecord, ExportStatus
from webapp.lib.long_work import MAX_LOST, SILENT
from webapp.live.models import Event
from webapp.worker_door.checkpoint_copies_and_exports import waiting_exports
from workers.gpu import checkpoint_exports

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint folder as the trainer leaves it, without the optimiser."""
    folder = tmp_path_factory.mktemp("checkpoints") / "00002-grpo-000007"
    make_tiny(folder / "model", seed=3)
    (folder / "COMPLETE").write_text("")
    return folder


@pytest.fixture
def checkpoint(tiny: Path) -> CheckpointRecord:
    experiment = make_experiment(team=make_team())
    return CheckpointRecord.objects.create(
        experiment=experiment, step=7, policy_version=8, path=str(tiny), size_bytes=1
    )


@pytest.fixture(autouse=True)
def _without_waiting_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine what is nice gets no time for minutes."""
    monkeypatch.setattr(checkpoint_exports, "POLITELY", ())


@pytest.fixture(autouse=True)
def _no_files_left() -> Iterator[None]:
    yield
    shutil.rmtree(checkpoint_exports.exports_folder(), ignore_errors=True)


def run_next() -> None:
    assert checkpoint_exports.export_next(threading.Event()) is not None


def test_an_export_loads_in_transformers_and_answers_with_the_same_logits(
    checkpoint: CheckpointRecord, tiny: Path
) -> None:
    export = exports.request_export(checkpoint=checkpoint, user=None, dtype="float32")
    run_next()
    export.refresh_from_db()
    assert (export.status, export.message) == (ExportStatus.FINISHED, "")
    folder = Path(export.path)
    assert f"step {checkpoint.step}" in (folder / "README.md").read_text()
    assert export.done_bytes == export.total_bytes == sum(p.stat().st_size for p in folder.iterdir())

    tokens = torch.arange(3, 40)[None]
    with torch.no_grad():
        ours, theirs = (
            AutoModelForImageTextToText.from_pretrained(path, dtype=torch.float32)(input_ids=tokens).logits
            for path in (tiny / "model", folder)
        )
    torch.testing.assert_close(theirs, ours, rtol=0, atol=0)
    stream = f"experiment.{checkpoint.experiment_id}"
    events = Event.objects.filter(stream=stream, type="checkpoint.exported").order_by("seq")
    assert [event.payload["status"] for event in events][0] == "queued"
    assert [event.payload["status"] for event in events][-1] == "finished"

    assert exports.remove_export(export=export)
    checkpoint_exports.remove_unwanted()
    export.refresh_from_db()
    assert export.status == ExportStatus.REMOVED
    assert not folder.exists()


def test_a_checkpoint_that_is_not_complete_is_refused_in_words(
    checkpoint: CheckpointRecord, tmp_path: Path
) -> None:
    CheckpointRecord.objects.filter(pk=checkpoint.pk).update(path=str(tmp_path))
    export = exports.request_export(checkpoint=checkpoint, user=None)
    run_next()
    export.refresh_from_db()
    assert export.status == ExportStatus.FAILED
    assert "not a complete checkpoint" in export.message


@pytest.mark.django_db(transaction=True)
def test_an_export_whose_process_is_killed_ends_and_says_so(
    checkpoint: CheckpointRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            started.append(self)
            self.kill()

    monkeypatch.setattr(subprocess, "Popen", Noted)
    export = exports.request_export(checkpoint=checkpoint, user=None)
    run_next()
    export.refresh_from_db()
    assert started
    assert export.status == ExportStatus.FAILED
    assert export.message == "the export ended with code -9: it left no message"
    assert export.ended_at


def test_exports_of_a_worker_that_dies_again_and_again_end(checkpoint: CheckpointRecord) -> None:
    export = exports.request_export(checkpoint=checkpoint, user=None)
    for number in range(1, MAX_LOST + 1):
        assert exports.claim_export(export=export, worker_name="gpu", host="h", folder=Path("/x"))
        CheckpointExport.objects.update(heartbeat_at=timezone.now() - timedelta(minutes=1))
        assert exports.lose_stale_exports() == 1
        export.refresh_from_db()
        assert export.status == ("failed" if number == MAX_LOST else "queued")
    assert export.message == f"{SILENT} 3 processes died."
    assert waiting_exports("gpu@here") == []


def test_a_worker_that_cannot_see_the_folder_leaves_it_to_others(checkpoint: CheckpointRecord) -> None:
    CheckpointRecord.objects.filter(pk=checkpoint.pk).update(path="/on/another/host")
    exports.request_export(checkpoint=checkpoint, user=None)
    assert checkpoint_exports.export_next(threading.Event()) is None
