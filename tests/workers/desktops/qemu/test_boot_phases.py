"""A machine that does not come up says how far it came and what it showed; KVM is believed once it booted."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from PIL import Image

from tests.workers.desktops.qemu.test_desktops import IMAGES
from workers.desktops.contract import BootFailed, BootPhase, DesktopSpec
from workers.desktops.host_storage import HostStorage
from workers.desktops.qemu import accelerator, boot_phases
from workers.desktops.qemu.base_images import sha256_of
from workers.desktops.qemu.boot_phases import PhaseLimit, Progress
from workers.desktops.qemu.provider import QemuProvider

pytestmark = [
    pytest.mark.vm,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        shutil.which("qemu-system-x86_64") is None or shutil.which("qemu-img") is None,
        reason="VIRTUAL MACHINES ARE NOT TESTED: apt-get install qemu-system-x86 qemu-utils",
    ),
]


@pytest.fixture
def blank(short_dir: Path) -> QemuProvider:
    """A provider whose only image is an empty disk: the firmware finds nothing to boot."""
    folder = short_dir / "images" / "blank"
    folder.mkdir(parents=True)
    disk = folder / "disk.qcow2"
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", str(disk), "16M"], check=True)
    manifest = {"name": "blank", "sha256": sha256_of(disk), "machine": {"memory_mb": 128}}
    (folder / "image.json").write_text(json.dumps(manifest))
    return QemuProvider(HostStorage(short_dir / "images", short_dir / "templates"))


async def test_a_boot_that_gets_nowhere_keeps_its_picture_and_log_and_leaves_nothing_running(
    blank, short_dir, monkeypatch
):
    monkeypatch.setitem(boot_phases.PHASE_LIMITS, BootPhase.BOOTING, PhaseLimit(limit_s=4.0, retries=1))
    seen: list[str] = []
    enter = Progress.enter

    def note(self: Progress, phase: BootPhase) -> None:
        enter(self, phase)
        seen.append(f"{phase} {self.attempt}")

    monkeypatch.setattr(Progress, "enter", note)
    spec = DesktopSpec(width=640, height=480, image="blank", memory_mb=128)
    with pytest.raises(BootFailed, match=r"did not come up \(booting\): no progress in 4 s") as caught:
        await blank.create("d1-1", spec, short_dir / "d" / "d1-1")
    assert seen == ["creating 1", "booting 1", "creating 2", "booting 2"]
    assert caught.value.boot_phase == BootPhase.BOOTING
    with Image.open(caught.value.screenshot) as picture:
        assert len(picture.convert("L").getcolors(1 << 16)) > 1, "the firmware's message is on it"
    assert not (short_dir / "d" / "d1-1").exists()
    assert [
        path.name for path in (short_dir / "templates").iterdir() if path.name.startswith(".making")
    ] == []
    assert blank.boot_phase("d1-1") == ""


async def test_a_machine_that_qemu_refuses_says_qemus_reason(blank, short_dir, monkeypatch):
    monkeypatch.setattr("workers.desktops.qemu.command_line.MACHINE", "no-such-machine")
    monkeypatch.setitem(boot_phases.PHASE_LIMITS, BootPhase.CREATING, PhaseLimit(limit_s=20.0, retries=0))
    spec = DesktopSpec(width=640, height=480, image="blank", memory_mb=128)
    with pytest.raises(BootFailed, match="unsupported machine type") as caught:
        await blank.create("d1-1", spec, short_dir / "d" / "d1-1")
    assert caught.value.boot_phase == BootPhase.CREATING


def test_health_without_an_image_says_what_to_run(short_dir):
    health = QemuProvider(HostStorage(short_dir / "images", short_dir / "templates")).probe()
    assert not health.usable
    assert health.remedies == ["make guest-image"]
    assert not (short_dir / "templates").exists(), "asking makes nothing"


@pytest.mark.skipif(not (IMAGES / "debian-desk").exists(), reason="NO GUEST KERNEL TO TRY: make guest-image")
def test_kvm_is_tried_by_booting_and_the_verdict_is_kept(short_dir, monkeypatch):
    """Also where the known bad module is loaded: the trial itself must come to the right verdict."""
    monkeypatch.setattr(accelerator, "KNOWN_BAD_MODULE", short_dir / "none")
    kernel, cache = IMAGES / "debian-desk" / "vmlinuz", short_dir / "verdict.json"
    verdict, reason = accelerator.accelerator(kernel, cache)
    if not accelerator.KVM_DEVICE.exists():
        assert (verdict, reason) == ("tcg", "/dev/kvm cannot be opened")
        return
    assert verdict == ("kvm" if "booted with KVM" in reason else "tcg")
    monkeypatch.setattr(accelerator, "PROGRAM", "must-not-be-started-again")
    assert accelerator.accelerator(kernel, cache) == (verdict, reason)


def test_without_a_kvm_device_nothing_is_tried(short_dir, monkeypatch):
    monkeypatch.setattr(accelerator, "KVM_DEVICE", short_dir / "kvm")
    verdict, reason = accelerator.accelerator(short_dir / "vmlinuz", short_dir / "verdict.json")
    assert verdict == "tcg"
    assert "cannot be opened" in reason
