"""Copies of folders: equal or not at all, in a folder and in a real S3 server's bucket."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.files.storage import storages

from testing.servers.s3_server import BUCKET, S3Server, s3_server
from webapp.lib.copies import folder_copy
from webapp.lib.copies.folder_copy import (
    MARK,
    CopiedFile,
    CopyDamaged,
    Manifest,
    copied_sum,
    fetch_folder,
    read_manifest,
    upload_folder,
)
from webapp.lib.copies.place import CopiesPlace, copies_place
from webapp.lib.media.bucket_address import COPIES, read_media_storage


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture(params=["folder", "bucket"])
def place(request, server: S3Server, settings, monkeypatch, tmp_path: Path) -> tuple[CopiesPlace, Path]:
    """The place, and the folder in which its files lie."""
    root = tmp_path / "shared" if request.param == "folder" else server.folder / tmp_path.name
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    named = str(root) if request.param == "folder" else f"s3://{BUCKET}/{tmp_path.name}"
    monkeypatch.setenv("DESKHAND_COPIES", named)
    settings.STORAGES = {**settings.STORAGES, COPIES: read_media_storage().django_storages[COPIES]}
    storages.__dict__.pop("backends", None)
    found = copies_place()
    assert found is not None
    return found, root


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "00001-grpo-000004"
    (made / "model").mkdir(parents=True)
    (made / "COMPLETE").touch()
    (made / "state.json").write_text('{"grpo_step": 4}')
    (made / "model" / "weights.bin").write_bytes(bytes(range(256)) * 40_000)  # S3 takes it in parts
    return made


def contents(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != MARK)
    return {str(one.relative_to(folder)): hashlib.sha256(one.read_bytes()).hexdigest() for one in files}


def test_a_copy_is_fetched_equal_and_knows_its_sum(place, folder: Path, tmp_path: Path) -> None:
    copies, _ = place
    manifest_sum = upload_folder(copies, "checkpoints/1", folder)
    assert copied_sum(folder) == manifest_sum
    manifest = read_manifest(copies, "checkpoints/1", manifest_sum)
    fetch_folder(copies, "checkpoints/1", manifest, tmp_path / "b" / "fetched", mark=manifest_sum)
    assert contents(tmp_path / "b" / "fetched") == contents(folder)
    assert copied_sum(tmp_path / "b" / "fetched") == manifest_sum
    assert manifest.num_bytes == sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) - 64

    copies.remove("checkpoints/1")
    assert list(copies.names("checkpoints/1")) == []
    with pytest.raises(FileNotFoundError):
        read_manifest(copies, "checkpoints/1", manifest_sum)


def test_a_second_copy_adds_what_changed_and_the_first_stays_whole(place, folder, tmp_path) -> None:
    copies, _ = place
    first = upload_folder(copies, "checkpoints/1", folder)
    before = contents(folder)
    (folder / "state.json").write_text('{"grpo_step": 4, "best": true}')
    assert upload_folder(copies, "checkpoints/1", folder) != first
    assert len(list(copies.names("checkpoints/1/files"))) == len(before) + 1
    fetch_folder(copies, "checkpoints/1", read_manifest(copies, "checkpoints/1", first), tmp_path / "old")
    assert contents(tmp_path / "old") == before


def test_a_damaged_copy_leaves_no_folder(place, folder: Path, tmp_path: Path) -> None:
    copies, root = place
    manifest_sum = upload_folder(copies, "checkpoints/1", folder)
    manifest = read_manifest(copies, "checkpoints/1", manifest_sum)
    stored = root / "checkpoints" / "1" / "files" / manifest.files["model/weights.bin"].sha256
    stored.write_bytes(b"\xff" + stored.read_bytes()[1:])
    with pytest.raises(CopyDamaged, match="model/weights.bin"):
        fetch_folder(copies, "checkpoints/1", manifest, tmp_path / "b" / "fetched")
    assert list((tmp_path / "b").iterdir()) == []

    listed = root / "checkpoints" / "1" / "manifests" / manifest_sum
    listed.write_bytes(listed.read_bytes().replace(b"state.json", b"outer.json"))
    with pytest.raises(CopyDamaged, match="sum"):
        read_manifest(copies, "checkpoints/1", manifest_sum)


@pytest.mark.parametrize("sha256", ["../../../../dev/zero", "0" * 63, "0" * 64 + "/../x"])
def test_a_manifest_names_contents_by_their_sums_alone(place, folder: Path, sha256: str) -> None:
    copies, _ = place
    upload_folder(copies, "x", folder)
    body = json.dumps({"files": {"model/a": {"sha256": sha256, "num_bytes": 1}}}).encode()
    forged = hashlib.sha256(body).hexdigest()
    (folder / "forged").write_bytes(body)
    copies.put(f"x/manifests/{forged}", folder / "forged")
    with pytest.raises(CopyDamaged, match="sha256"):
        read_manifest(copies, "x", forged)


def test_a_file_that_is_larger_than_was_said_is_not_begun(place, folder: Path, tmp_path: Path) -> None:
    copies, _ = place
    whole = read_manifest(copies, "x", upload_folder(copies, "x", folder))
    weights = whole.files["model/weights.bin"]
    for num_bytes, error in ((1, "10240000 bytes, 1 were copied"), (weights.num_bytes, "")):
        said = {"model/a": CopiedFile(sha256=weights.sha256, num_bytes=num_bytes)}
        target = tmp_path / "b" / str(num_bytes)
        if error:
            with pytest.raises(CopyDamaged, match=error):
                fetch_folder(copies, "x", Manifest(files=said), target)
            assert not target.parent.exists()
        else:
            fetch_folder(copies, "x", Manifest(files=said), target)


def test_a_list_of_files_without_end_is_not_read(place, folder: Path, monkeypatch) -> None:
    copies, _ = place
    manifest_sum = upload_folder(copies, "x", folder)
    monkeypatch.setattr(folder_copy, "MAX_MANIFEST_BYTES", 100)
    with pytest.raises(CopyDamaged, match="does not have the sum"):
        read_manifest(copies, "x", manifest_sum)


def test_no_file_leaves_the_folder(place, folder: Path, tmp_path: Path) -> None:
    copies, _ = place
    whole = read_manifest(copies, "x", upload_folder(copies, "x", folder))
    for name in ("../outside", "/outside", "model/../../outside", "model/\0"):
        forged = Manifest(files={name: whole.files["state.json"]})
        with pytest.raises(CopyDamaged, match="no path within"):
            fetch_folder(copies, "x", forged, tmp_path / "b" / "fetched")
    assert not (tmp_path / "outside").exists()
    assert not (tmp_path / "b" / "outside").exists()
