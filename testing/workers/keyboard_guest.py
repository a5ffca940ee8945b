"""A small Linux guest with a Windows guest's hardware: text login on PS/2 keys, IDE disc, serial agent.

It is a kernel and an initramfs from Debian packages: busybox, and the machine's own qemu-ga. Nothing in it
takes input for us; everything is typed through QEMU's monitor. Built once into `var/cache/keyboard-guest`.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from testing.paths import REPOSITORY
from testing.workers.qemu_guest_agents import agent_program
from workers.desktops.qemu.base_images import sha256_of

CACHE = REPOSITORY / "var" / "cache" / "keyboard-guest"
MODULES = (
    "scsi/scsi_common", "scsi/scsi_mod", "ata/libata", "ata/ata_piix", "cdrom/cdrom", "scsi/sr_mod",
    "fs/nls/nls_utf8", "fs/isofs/isofs",
)  # fmt: skip
USER = "operator"
INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp /run /mnt /var/run /home/operator
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mkdir -p /dev/pts; mount -t devpts devpts /dev/pts
for module in $(cat /modules.order); do insmod /modules/$module || echo "no $module" >/dev/ttyS1; done
chown -R 1000:1000 /home/operator
(while true; do /usr/sbin/qemu-ga -m isa-serial -p /dev/ttyS0 -t /run -f /run/qemu-ga.pid; sleep 1; done) &
while true; do getty -L 38400 tty1 linux; done
"""


def build() -> tuple[Path, Path]:
    """Kernel and initramfs, made when they are not there. Needs apt-get's package source."""
    kernel, initrd = CACHE / "vmlinuz", CACHE / "initrd.img"
    if not (kernel.exists() and initrd.exists()):
        CACHE.mkdir(parents=True, exist_ok=True)
        work = CACHE / f"work-{os.getpid()}"
        try:
            root = _unpacked(work)
            image = next((root / "boot").glob("vmlinuz-*"))
            made = work / "initrd.img"
            made.write_bytes(gzip.compress(_archive(_files(root)), compresslevel=3))
            shutil.copyfile(image, work / "vmlinuz")
            made.replace(initrd)
            (work / "vmlinuz").replace(kernel)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return kernel, initrd


def with_password(initrd: Path, target: Path, password: str) -> Path:
    """The initramfs for one test: a user with a password, as Linux keeps them (hashed)."""
    busybox = shutil.which("busybox") or str(CACHE / "busybox")
    hashed = subprocess.run(
        [busybox, "mkpasswd", "-m", "sha512", "-P", "0"], input=password + "\n", text=True,
        capture_output=True, check=True,
    ).stdout.strip()  # fmt: skip
    extra = {
        "etc/passwd": (0o644, b"root:x:0:0::/:/bin/sh\noperator:x:1000:1000::/home/operator:/bin/sh\n"),
        "etc/shadow": (0o600, f"root:*:1::::::\n{USER}:{hashed}:1::::::\n".encode()),
    }
    target.write_bytes(initrd.read_bytes() + gzip.compress(_archive(extra)))
    return target


def _unpacked(work: Path) -> Path:
    """The packages' files: a kernel and busybox."""
    work.mkdir(parents=True)
    names = subprocess.run(
        ["apt-cache", "depends", "linux-image-amd64"], capture_output=True, text=True, check=True
    ).stdout
    kernel = re.search(r"Depends: (linux-image-[\d.-]+-amd64)", names)
    assert kernel, "apt-cache knows no linux-image-amd64: run apt-get update"
    command = ["apt-get", "download", "-q", "-o", "APT::Sandbox::User=root", kernel[1], "busybox-static"]
    subprocess.run(command, cwd=work, check=True, timeout=600)
    for package in work.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", str(package), str(work / "root")], check=True)
    shutil.copy(work / "root" / "bin" / "busybox", CACHE / "busybox")
    return work / "root"


def _files(root: Path) -> dict[str, tuple[int, bytes]]:
    """Path in the guest -> (mode, content)."""
    files: dict[str, tuple[int, bytes]] = {
        "init": (0o755, INIT.encode()),
        "bin/busybox": (0o755, (root / "bin" / "busybox").read_bytes()),
        "usr/sbin/qemu-ga": (0o755, Path(agent_program()).read_bytes()),
        "etc/group": (0o644, b"root:x:0:\noperator:x:1000:\n"),
        "modules.order": (0o644, "\n".join(f"{Path(name).name}.ko" for name in MODULES).encode()),
    }
    for library in _libraries(agent_program()):
        files[library.lstrip("/")] = (0o755, Path(library).read_bytes())
    for name in MODULES:
        path = next((root / "lib" / "modules").glob(f"**/{name}.ko"))
        files[f"modules/{path.name}"] = (0o644, path.read_bytes())
    return files


def _libraries(program: str) -> list[str]:
    """What the dynamic loader needs for a program, itself included."""
    text = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return sorted(set(re.findall(r"(?:=> )?(/\S+) \(0x", text)))


def _archive(files: dict[str, tuple[int, bytes]]) -> bytes:
    """A newc cpio archive, as the kernel unpacks it."""
    folders = sorted({str(parent) for path in files for parent in Path(path).parents} - {"."})
    out = io.BytesIO()
    entries = [(path, 0o040755, b"") for path in folders]
    entries += [(path, 0o100000 | mode, data) for path, (mode, data) in files.items()]
    for number, (path, mode, data) in enumerate([*entries, ("TRAILER!!!", 0, b"")], 1):
        name = path.encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0)
        out.write(b"070701" + b"".join(b"%08X" % value for value in fields) + name)
        out.write(b"\0" * (-out.tell() % 4) + data)
        out.write(b"\0" * (-out.tell() % 4))
    return out.getvalue()


def publish(images: Path, name: str, password: str, login: dict[str, object]) -> Path:
    """The guest as an image of the registry, with an empty disk, described as a Windows one would be."""
    kernel, initrd = build()
    folder = images / name
    folder.mkdir(parents=True)
    shutil.copyfile(kernel, folder / "vmlinuz")
    with_password(initrd, folder / "initrd.img", password)
    disk = folder / "disk.qcow2"
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", str(disk), "16M"], check=True)
    description = {
        "name": name,
        "sha256": sha256_of(disk),
        "os": "windows",
        "hardware": "plain",
        "agent": None,
        "kernel_args": ["console=ttyS1", "quiet", "mitigations=off", "vt.global_cursor_default=0"],
        "home": "/home/operator",
        "machine": {"memory_mb": 256, "vcpus": 1},
        "windows": {"session_check": False, "login": login},
    }
    (folder / "image.json").write_text(json.dumps(description))
    return folder
