"""What an attempt goes on from on a host that did not write it; and copies of checkpoints and exports."""

from __future__ import annotations

import asyncio
import io
import shutil
import tarfile
import threading
from pathlib import Path

import pytest
from django.core.files.storage import storages

from testing.factories import make_experiment, make_team
from training.content.recipes.tiny.make_checkpoint import make_tiny
from training.contracts.trainer_reports import CheckpointReport
from webapp.checkpoints.download import download
from webapp.checkpoints.queries.copies import CheckpointElsewhere
from webapp.checkpoints.services import exports
from webapp.experiments.models import Attempt, CheckpointRecord, ExportStatus
from webapp.experiments.services import checkpoints
from webapp.lib.copies.place import copies_place
from webapp.lib.media.bucket_address import COPIES
from webapp.worker_door.attempts import held
from workers.gpu import checkpoint_exports, checkpoint_uploads
from workers.gpu.fetched_checkpoints import bring_checkpoint, bring_model
from workers.gpu.model_folder import ModelNotFound

pytestmark = pytest.mark.django_db


@pytest.fixture
def place(settings, tmp_path: Path):
    """A shared folder; `here` and `there` are the data folders of two hosts."""
    settings.DATA_DIR = tmp_path / "here"
    storage = {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": str(tmp_path / "shared")},
    }
    settings.STORAGES = {**settings.STORAGES, COPIES: storage}
    storages.__dict__.pop("backends", None)
    return copies_place()


@pytest.fixture
def attempt() -> Attempt:
    experiment = make_experiment(team=make_team())
    experiment.attempts.create(number=1, worker_name="gpu@there")
    return experiment.attempts.create(number=2, worker_name="gpu@here", resumed_step=8)


def save(attempt: Attempt, directory: Path, step: int) -> CheckpointRecord:
    """As the trainer of another attempt does."""
    folder = directory / f"{step:05d}-grpo-{step:06d}"
    folder.mkdir(parents=True)
    (folder / "state.json").write_text(f'{{"grpo_step": {step}}}')
    (folder / "COMPLETE").touch()
    saved = CheckpointReport(step=step, path=str(folder), policy_version=step, bytes=1)
    checkpoints.record_checkpoint(experiment_id=attempt.experiment_id, report=saved)
    return CheckpointRecord.objects.get(path=str(folder))


def bring(attempt: Attempt, directory: Path) -> list[str]:
    """What the trainer then finds complete."""
    bring_checkpoint(held(attempt), directory, lambda: None)
    return sorted(marker.parent.name for marker in directory.glob("[0-9]*/COMPLETE"))


def copy_all(place) -> None:
    while checkpoint_uploads.upload_waiting(place):
        pass


def test_a_checkpoint_of_a_host_that_is_gone_is_fetched(place, attempt, tmp_path) -> None:
    there, here = tmp_path / "there", tmp_path / "here" / "checkpoints"
    save(attempt, there, 4)
    save(attempt, there, 8)
    copy_all(place)
    shutil.rmtree(there)
    assert bring(attempt, here) == ["00008-grpo-000008"]
    assert (here / "00008-grpo-000008" / "state.json").read_text() == '{"grpo_step": 8}'
    (here / "00008-grpo-000008" / "extra").touch()  # it is known again and not fetched once more
    assert bring(attempt, here) == ["00008-grpo-000008"]
    assert (here / "00008-grpo-000008" / "extra").exists()
    assert not attempt.experiment.incidents.exists()


def test_without_a_copy_of_the_newest_it_goes_on_from_an_older_one_and_says_so(place, attempt, tmp_path):
    there, here = tmp_path / "there", tmp_path / "here" / "checkpoints"
    save(attempt, there, 4)
    copy_all(place)
    save(attempt, there, 8)
    shutil.rmtree(there)
    # What this host wrote before, behind the one that it goes on from, is of steps that are trained anew.
    late = here / "00006-grpo-000006"
    late.mkdir(parents=True)
    (late / "COMPLETE").touch()
    assert bring(attempt, here) == ["00004-grpo-000004"]
    attempt.refresh_from_db()
    assert attempt.resumed_step == 4
    assert "goes on from step 4: the checkpoint of step 8" in attempt.experiment.incidents.get().message


def test_one_of_the_same_name_that_was_trained_elsewhere_takes_the_place(place, attempt, tmp_path) -> None:
    there, here = tmp_path / "there", tmp_path / "here" / "checkpoints"
    save(attempt, there, 8)
    copy_all(place)
    (here / "00008-grpo-000008").mkdir(parents=True)
    (here / "00008-grpo-000008" / "COMPLETE").touch()
    shutil.rmtree(there)
    bring(attempt, here)
    assert (here / "00008-grpo-000008" / "state.json").read_text() == '{"grpo_step": 8}'


def test_what_cannot_be_had_is_refused(place, attempt, tmp_path) -> None:
    there, here = tmp_path / "there", tmp_path / "here" / "checkpoints"
    record = save(attempt, there, 8)
    copy_all(place)
    shutil.rmtree(there)
    for stored in (tmp_path / "shared" / record.copy_prefix / "files").iterdir():
        stored.write_bytes(b"other bytes")
    with pytest.raises(
        CheckpointElsewhere, match=r"step 8.*is not on the host of gpu@here.*has 11 bytes, 0 were copied"
    ):
        bring(attempt, here)
    assert not here.exists()


def test_a_folder_that_this_host_sees_needs_no_copy(settings, attempt, tmp_path) -> None:
    there, here = tmp_path / "there", tmp_path / "here" / "checkpoints"
    save(attempt, there, 8)
    assert bring(attempt, here) == ["00008-grpo-000008"]
    shutil.rmtree(there)
    shutil.rmtree(here)
    with pytest.raises(CheckpointElsewhere, match="it has no copy"):
        bring(attempt, here)


def test_a_report_of_the_same_folder_is_copied_anew_and_a_deleted_one_forgotten(place, attempt, tmp_path):
    record = save(attempt, tmp_path / "there", 8)
    copy_all(place)
    record.refresh_from_db()
    first = record.copy_sha256
    (tmp_path / "there" / "00008-grpo-000008" / "state.json").write_text('{"grpo_step": 8, "best": 1}')
    best = CheckpointReport(step=8, path=record.path, policy_version=8, is_best=True, success=0.5, bytes=1)
    checkpoints.record_checkpoint(experiment_id=attempt.experiment_id, report=best)
    copy_all(place)
    record.refresh_from_db()
    assert record.copy_sha256 not in ("", first)
    checkpoints.record_checkpoint_deleted(experiment_id=attempt.experiment_id, path=record.path)
    checkpoint_uploads.remove_unneeded(place)
    assert list(place.names("checkpoints")) == []
    record.refresh_from_db()
    assert record.copy_sha256 == ""


@pytest.mark.parametrize("has_safetensors", [True, False])
def test_no_pickle_and_no_code_of_another_hosts_model_is_taken(place, attempt, tmp_path, has_safetensors):
    record = save(attempt, tmp_path / "there", 8)
    model = Path(record.path) / "model"
    model.mkdir()
    taken = {"config.json", "tokenizer.json", *(["model.safetensors"] if has_safetensors else [])}
    for name in (*taken, "pytorch_model.bin", "training_args.pt", "modeling_evil.py", "weights.pkl"):
        (model / name).write_text("{}")
    copy_all(place)
    shutil.rmtree(tmp_path / "there")
    if has_safetensors:
        assert {file.name for file in Path(bring_model(str(model))).iterdir()} == taken
    else:
        with pytest.raises(ModelNotFound, match=r"has no model/\*.safetensors"):
            bring_model(str(model))


def test_another_host_starts_from_it_exports_it_and_the_export_is_downloaded_anywhere(
    place, attempt, tmp_path, monkeypatch, admin_user
) -> None:
    monkeypatch.setattr(checkpoint_exports, "POLITELY", ())
    record = save(attempt, tmp_path / "there", 8)
    make_tiny(Path(record.path) / "model", seed=3)
    copy_all(place)
    shutil.rmtree(tmp_path / "there")
    with pytest.raises(ModelNotFound):
        bring_model(f"{record.path}-other")
    model = Path(bring_model(f"{record.path}/model"))
    assert (model / "config.json").is_file()
    assert model.is_relative_to(tmp_path / "here")

    record.refresh_from_db()
    export = exports.request_export(checkpoint=record, user=None, dtype="float32")
    checkpoint_exports.export_next(threading.Event())
    export.refresh_from_db()
    assert (export.status, export.message) == (ExportStatus.FINISHED, "")
    checkpoint_uploads.upload_exports(place)
    weights = next(Path(export.path).glob("*.safetensors")).read_bytes()
    shutil.rmtree(export.path)
    export.refresh_from_db()

    response = download(export=export, user=admin_user)
    body = asyncio.run(_read(response))
    assert len(body) == int(response["Content-Length"])
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        found = {Path(one.name).name: archive.extractfile(one) for one in archive.getmembers()}
    assert found["model.safetensors"].read() == weights


async def _read(response) -> bytes:
    return b"".join([chunk async for chunk in response])
