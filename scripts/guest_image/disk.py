"""From a root folder to a published image: ext4, qcow2, description, one atomic change of a link."""

import hashlib
import json
import os
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from setup_common import SetupError

from guest_image.recipe import (
    AGENT_PORT,
    HOME,
    KERNEL_ARGS,
    OS_NAME,
    QEMU_ARCH,
    USER,
    Recipe,
)

MIB = 1 << 20
FORMAT = 1
DESCRIPTION = "image.json"


def make_disk(root: Path, work: Path, disk: Path, slack_mb: int) -> None:
    """An ext4 file system without a partition table, as a compressed qcow2. Needs root for the owners."""
    used = subprocess.run(
        ["du", "-sx", "--block-size=1M", str(root)], capture_output=True, text=True, check=True
    )
    size_mb = int(int(used.stdout.split()[0]) * 1.15) + slack_mb
    raw = work / "disk.raw"
    raw.unlink(missing_ok=True)
    # No journal: a desktop is thrown away, never repaired.
    options = ["-q", "-t", "ext4", "-L", "desk", "-m", "0", "-d", str(root)]
    # The agent limits what the user may keep.
    options += ["-O", "^has_journal,quota", "-E", "quotatype=usrquota"]
    _run(["mke2fs", *options, str(raw), f"{size_mb}M"])
    disk.unlink(missing_ok=True)
    options = ["-O", "qcow2", "-c", "-W", "-m", "4", "-o", "compression_type=zstd"]
    _run(["qemu-img", "convert", *options, str(raw), str(disk)])
    raw.unlink()


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SetupError(f"{command[0]} failed: {done.stderr.strip()[-400:]}")


def sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def describe(
    recipe: Recipe, folder: Path, kernel: str, packages: dict[str, str], commands: list[str], inputs: str
) -> dict:
    """What a provider has to know to start the image; see docs/guest-image.md."""
    files = {"disk": "disk.qcow2", "kernel": "vmlinuz", "initrd": "initrd.img"}
    return {
        "format": FORMAT,
        "name": recipe.name,
        "summary": recipe.summary,
        "sha256": sha256(folder / files["disk"]),
        "inputs": inputs,
        "os": OS_NAME,
        "os_family": "linux",
        "arch": QEMU_ARCH,
        "kernel": kernel,
        "built_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "files": {
            role: {"name": name, "bytes": (folder / name).stat().st_size, "sha256": sha256(folder / name)}
            for role, name in files.items()
        },
        "kernel_args": " ".join(KERNEL_ARGS),
        "machine": {
            "cpu": "Nehalem",
            "vcpus": 1,
            "memory_mb": recipe.memory_mb,
            "disk_bus": "virtio-blk-pci",
            "network": "virtio-net-pci",
            "keyboard": "virtio-keyboard-pci",
            "pointer": "virtio-tablet-pci",
            "display": "VGA",
            "entropy": "virtio-rng-pci",
        },
        "network": {"address": "10.0.2.15", "gateway": "10.0.2.2", "dns": "10.0.2.3"},
        "agent": {"port": AGENT_PORT, "protocol": "osworld", "server": "deskhand"},
        "screen": {"width": recipe.width, "height": recipe.height, "set_by": "edid"},
        "phases": {"console": "ttyS0", "prefix": "deskhand: phase="},
        "user": USER,
        "home": HOME,
        "packages": packages,
        "commands": commands,
    }


def publish(draft: Path, images: Path, name: str, description: dict) -> Path:
    """Move the finished folder to its place and point images/NAME at it. Returns that link.

    Running machines keep the version that they were started from: a version is never changed.
    """
    (draft / DESCRIPTION).write_text(json.dumps(description, indent=1) + "\n")
    for path in draft.iterdir():
        path.chmod(0o444)
    draft.chmod(0o755)
    version = images / "versions" / f"{name}-{description['sha256'][:12]}"
    version.parent.mkdir(parents=True, exist_ok=True)
    if version.exists():
        shutil.rmtree(version)
    os.replace(draft, version)
    link = images / name
    fresh = images / f".{name}.{os.getpid()}"
    fresh.symlink_to(version.relative_to(images))
    os.replace(fresh, link)
    return link
