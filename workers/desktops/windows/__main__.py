"""Prepare Windows images: `python -m workers.desktops.windows disc | register`; see docs/windows.md."""

import argparse
import os
import sys
from pathlib import Path

from workers.desktops.qemu.base_images import ImageError
from workers.desktops.windows.image_settings import MIN_MEMORY_MB, WindowsSettings, register
from workers.desktops.windows.iso_disc import DiscError, guest_files, make_disc
from workers.desktops.windows.login_keys import WINDOWS_STEPS, Login


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m workers.desktops.windows", description=__doc__)
    verbs = top.add_subparsers(dest="verb", required=True)
    disc = verbs.add_parser("disc", help="write the disc that prepares a Windows guest")
    disc.add_argument("path", type=Path, help="the ISO file to write")
    disc.add_argument("--agent", type=Path, required=True, help="qemu-ga-x86_64.msi, from virtio-win")
    image = verbs.add_parser("register", help="take a prepared disk into the registry of images")
    image.add_argument("name", help="name of the image, e.g. windows-2022")
    image.add_argument("disk", type=Path, help="qcow2 disk of a Windows that was shut down")
    image.add_argument("--memory-mb", type=int, default=4096)
    image.add_argument("--vcpus", type=int, default=2)
    image.add_argument("--uefi-vars", type=Path, help="variables of an UEFI installation")
    image.add_argument("--secret", help="secret with the password; left out = Windows logs in by itself")
    image.add_argument("--step", action="append", dest="steps", help="login step, in order (docs/windows.md)")
    image.add_argument("--images", type=Path, help="registry (default DATA_DIR/images)")
    return top


def write_disc(options: argparse.Namespace) -> str:
    options.path.write_bytes(make_disc(guest_files(options.agent)))
    return f"{options.path}: put it into the guest's drive and run install.ps1 there"


def register_image(options: argparse.Namespace) -> str:
    login = None
    if options.secret:
        login = Login(secret=options.secret, steps=tuple(options.steps or WINDOWS_STEPS))
    elif options.steps:
        raise ImageError("--step needs --secret")
    if options.memory_mb < MIN_MEMORY_MB:
        raise ImageError(f"--memory-mb: Windows needs {MIN_MEMORY_MB} or more")
    settings = WindowsSettings(firmware="uefi" if options.uefi_vars else "bios", login=login)
    images = options.images or Path(os.environ.get("DESKHAND_DATA_DIR") or "var") / "images"
    machine = {"memory_mb": options.memory_mb, "vcpus": options.vcpus}
    folder = register(
        images, options.name, options.disk, settings, machine=machine, variables=options.uefi_vars
    )
    return f"{folder}: registered; name it in the config as desktops.windows.image"


def main() -> int:
    options = parser().parse_args()
    try:
        message = {"disc": write_disc, "register": register_image}[options.verb](options)
    except (DiscError, ImageError, OSError, ValueError) as error:
        sys.stderr.write(f"windows: {error}\n")
        return 1
    sys.stdout.write(message + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
