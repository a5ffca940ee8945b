"""The registry of base images says exactly what is wrong with an image."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workers.desktops.qemu.base_images import ImageError, ImageStore, sha256_of


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    """A registry with one good image, `desk`."""
    folder = tmp_path / "desk"
    folder.mkdir()
    (folder / "disk.qcow2").write_bytes(b"QFI\xfb" + b"data" * 100)
    (folder / "vmlinuz").write_bytes(b"kernel")
    write_manifest(folder)
    return ImageStore(tmp_path)


def write_manifest(folder: Path, **changes: object) -> None:
    manifest = {
        "name": folder.name,
        "sha256": sha256_of(folder / "disk.qcow2"),
        "kernel_args": "root=/dev/vda",
        "agent": {"port": 5000, "protocol": "osworld"},
        "machine": {"memory_mb": 1024, "vcpus": 1},
        "packages": {"bash": "5"},
    }
    (folder / "image.json").write_text(json.dumps({**manifest, **changes}))


def test_a_good_image_is_loaded_with_its_kernel_and_the_machine_it_asks_for(store):
    image = store.load("desk")
    assert store.names() == ["desk"]
    assert image.manifest.machine.memory_mb == 1024
    assert image.manifest.command_line == "root=/dev/vda"
    assert image.kernel == image.folder / "vmlinuz"
    assert image.initrd is None


def test_an_unknown_image_is_answered_with_the_known_ones_and_the_command(store):
    with pytest.raises(
        ImageError, match=r"'windows' is not in .* \(there: desk\); .*make guest-image"
    ) as caught:
        store.load("windows")
    assert caught.value.permanent


@pytest.mark.parametrize("name", ["", "../desk", "a/b", ".hidden"])
def test_a_name_that_leads_out_of_the_registry_is_refused(store, name):
    with pytest.raises(ImageError, match="is no image name"):
        store.load(name)


def test_a_changed_disk_is_noticed(store, tmp_path):
    store.load("desk")
    with open(tmp_path / "desk" / "disk.qcow2", "ab") as disk:
        disk.write(b"!")
    with pytest.raises(ImageError, match=r"disk.qcow2 is damaged or was changed"):
        store.load("desk")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "disk.qcow2").unlink(), "disk.qcow2 is missing"),
        (lambda folder: (folder / "disk.qcow2").write_bytes(b"raw"), "is no qcow2 image"),
        (lambda folder: (folder / "vmlinuz").unlink(), "vmlinuz is missing"),
        (lambda folder: (folder / "image.json").write_text("{"), "image.json is no JSON"),
        (lambda folder: write_manifest(folder, sha256="abc"), "image.json: sha256: String should match"),
        (lambda folder: write_manifest(folder, name="other"), "describes 'other'"),
        (lambda folder: write_manifest(folder, agent={"port": 0}), r"agent.port: Input should be"),
    ],
)
def test_every_kind_of_damage_is_named_with_its_file(store, tmp_path, damage, message):
    damage(tmp_path / "desk")
    with pytest.raises(ImageError, match=message):
        store.load("desk")


def test_an_image_that_is_replaced_meanwhile_keeps_the_files_it_was_loaded_with(store, tmp_path):
    new = tmp_path / "versions" / "desk-2"
    new.parent.mkdir()
    (tmp_path / "desk").rename(tmp_path / "versions" / "desk-1")
    (tmp_path / "desk").symlink_to("versions/desk-1")
    image = ImageStore(tmp_path).load("desk")
    new.mkdir()
    (tmp_path / "desk").unlink()
    (tmp_path / "desk").symlink_to("versions/desk-2")
    assert image.disk.exists()
