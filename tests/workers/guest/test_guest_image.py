"""The guest image's builder and the parts of its agent that need no machine."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from workers.desktops.contract import EnvError
from workers.desktops.qemu.base_images import ImageError, ImageStore
from workers.guest import agent, clone_wakeup, xorg_config

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"


@pytest.fixture(autouse=True)
def builder_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The builder is a package of the folder of scripts."""
    monkeypatch.syspath_prepend(str(SCRIPTS))


def draft_of(images: Path, content: bytes) -> Path:
    draft = images / ".draft-debian-desk-1"
    draft.mkdir(parents=True)
    (draft / "disk.qcow2").write_bytes(b"QFI\xfb" + content)
    for name in ("vmlinuz", "initrd.img"):
        (draft / name).write_bytes(name.encode())
    return draft


def publish(images: Path, content: bytes) -> Path:
    from guest_image.disk import describe
    from guest_image.disk import publish as publish_draft
    from guest_image.recipe import RECIPES

    draft = draft_of(images, content)
    description = describe(RECIPES["debian-desk"], draft, "6.1.0-test", {"bash": "5"}, ["bash"], "inputs")
    return publish_draft(draft, images, "debian-desk", description)


def test_a_published_image_is_what_the_provider_reads(tmp_path):
    link = publish(tmp_path, b"one")
    image = ImageStore(tmp_path).load("debian-desk")
    assert image.manifest.name == "debian-desk"
    assert image.manifest.agent.port == 5000
    assert "root=/dev/vda" in image.manifest.command_line
    assert image.kernel == link.resolve() / "vmlinuz"
    assert image.disk.stat().st_mode & 0o222 == 0, "a base image is never written"


def test_a_newer_version_takes_the_name_and_leaves_the_older_one_whole(tmp_path):
    first = publish(tmp_path, b"one").resolve()
    second = publish(tmp_path, b"two").resolve()
    assert (tmp_path / "debian-desk").resolve() == second != first
    assert (first / "disk.qcow2").read_bytes() == b"QFI\xfbone"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_changed_disk_is_refused(tmp_path):
    link = publish(tmp_path, b"one")
    disk = link.resolve() / "disk.qcow2"
    disk.chmod(0o644)
    disk.write_bytes(b"QFI\xfbbad")
    with pytest.raises(ImageError, match="damaged or was changed") as caught:
        ImageStore(tmp_path).load("debian-desk")
    assert isinstance(caught.value, EnvError)


def test_modules_are_loaded_after_what_they_need(tmp_path):
    from guest_image.boot_files import in_load_order
    from setup_common import SetupError

    (tmp_path / "modules.dep").write_text(
        "kernel/net.ko: kernel/virtio.ko kernel/ring.ko\nkernel/virtio.ko: kernel/ring.ko\nkernel/ring.ko:\n"
        "kernel/drivers/my-disk.ko: kernel/virtio.ko kernel/ring.ko\n"
    )
    (tmp_path / "modules.builtin").write_text("kernel/built_in.ko\n")
    ordered = in_load_order(tmp_path, ("net", "built_in", "my_disk"))
    assert ordered == ["kernel/ring.ko", "kernel/virtio.ko", "kernel/net.ko", "kernel/drivers/my-disk.ko"]
    with pytest.raises(SetupError, match="no module nothing"):
        in_load_order(tmp_path, ("nothing",))


def test_the_key_of_a_build_changes_with_the_recipe():
    from guest_image.build import inputs_digest
    from guest_image.recipe import RECIPES

    recipe = RECIPES["debian-desk"]
    assert inputs_digest(recipe) == inputs_digest(recipe)
    assert inputs_digest(recipe) != inputs_digest(replace(recipe, extra_packages=("nano",)))
    assert inputs_digest(recipe) != inputs_digest(RECIPES["debian-office"])
    command = [sys.executable, "-m", "guest_image", "--print-inputs"]
    shown = subprocess.run(command, cwd=SCRIPTS, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == inputs_digest(recipe)


def test_an_unknown_recipe_is_named_with_those_there_are():
    command = [sys.executable, "-m", "guest_image", "no-such"]
    shown = subprocess.run(command, cwd=SCRIPTS, capture_output=True, text=True, check=False)
    assert shown.returncode == 2
    assert "'no-such'" in shown.stderr
    assert "debian-office" in shown.stderr


def test_abandoned_build_folders_go_and_living_ones_stay(tmp_path):
    import os

    from guest_image.build import remove_abandoned

    living = tmp_path / f"work-debian-desk-{os.getpid()}"
    for name in (
        "work-debian-desk-4194399",
        ".draft-debian-desk-4194399",
        "packages-debian-desk-1",
        living.name,
    ):
        (tmp_path / name).mkdir()
    remove_abandoned(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["packages-debian-desk-1", living.name]


def device(root: Path, name: str, events: int) -> None:
    folder = root / name / "device" / "capabilities"
    folder.mkdir(parents=True)
    (folder / "ev").write_text(f"{events:x}\n")


def test_the_display_server_is_told_the_machines_devices(tmp_path):
    device(tmp_path, "event0", 1 << xorg_config.EV_KEY)  # a power button: neither keyboard nor pointer
    device(tmp_path, "event1", 1 << xorg_config.EV_KEY | 1 << xorg_config.EV_REP)
    device(tmp_path, "event2", 1 << xorg_config.EV_KEY | 1 << xorg_config.EV_ABS)
    device(tmp_path, "event3", 1 << xorg_config.EV_KEY | 1 << xorg_config.EV_REL)
    (tmp_path / "mouse0").mkdir()
    devices = xorg_config.input_devices(str(tmp_path))
    assert devices == {"event1": "CoreKeyboard", "event2": "CorePointer", "event3": "SendCoreEvents"}
    text = xorg_config.configuration(devices)
    assert 'Option "Device" "/dev/input/event2"' in text
    assert 'InputDevice "event1" "CoreKeyboard"' in text
    assert "event0" not in text


def test_a_machine_is_weak_only_where_its_maker_says_so():
    line = "console=ttyS0 quiet root=/dev/vda"
    assert agent.weaknesses(line) == agent.weaknesses("") == ()
    assert agent.weaknesses(f"{line} deskhand.without=agent,limits panic=-1\n") == ("agent", "limits")


@pytest.mark.parametrize(
    ("entropy", "problem"), [("00" * 31, "31 bytes are too few"), ("zz", "non-hexadecimal")]
)
def test_bad_entropy_is_refused_before_it_reaches_the_kernel(entropy, problem):
    with pytest.raises(ValueError, match=problem):
        clone_wakeup.reseed(entropy)


def test_every_recipes_description_is_json(tmp_path):
    from guest_image.disk import describe
    from guest_image.recipe import RECIPES

    draft = draft_of(tmp_path, b"x")
    for recipe in RECIPES.values():
        description = json.loads(json.dumps(describe(recipe, draft, "k", {}, [], "i")))
        assert description["machine"]["memory_mb"] == recipe.memory_mb
