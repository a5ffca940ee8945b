"""What image.json says about a Windows image, and registering one.

IMAGES/NAME/{disk.qcow2, image.json, vars.fd (UEFI only)}; the base disk is never written afterwards.
"""

import json
import os
import secrets
import shutil
import subprocess
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from workers.desktops.qemu.base_images import GuestImage, ImageError, sha256_of
from workers.desktops.qemu.machine_identity import UEFI_VARIABLES
from workers.desktops.windows.login_keys import Login

MIN_MEMORY_MB = 2048
HINT = "see docs/windows.md"


class WindowsSettings(BaseModel):
    """`windows` of image.json."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    firmware: Literal["bios", "uefi"] = "bios"
    login: Login | None = None
    """None: Windows logs its user in by itself."""
    session_limit_s: float = Field(default=300.0, gt=0, le=3600)
    """How long the session may take to answer when Windows logs its user in by itself."""
    session_check: bool = True
    """Whether the program of install.ps1 must answer; without it launch and windows do not work."""


def settings_of(image: GuestImage) -> WindowsSettings:
    """The image's settings. Raises ImageError naming the field."""
    path = image.folder / "image.json"
    values = json.loads(path.read_text()).get("windows")
    if values is None:
        raise ImageError(
            f"{path}: windows is missing; register the disk with `python -m workers.desktops.windows`"
        )
    try:
        settings = WindowsSettings.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in ("windows", *first["loc"]))
        raise ImageError(f"{path}: {field}: {first['msg']}; {HINT}") from error
    if settings.firmware == "uefi" and not (image.folder / UEFI_VARIABLES).exists():
        missing = image.folder / UEFI_VARIABLES
        raise ImageError(f"{missing} is missing: an UEFI image needs its variables; {HINT}")
    return settings


def secrets_folder(images: Path) -> Path:
    """Where an installation whose images are in this folder keeps its secrets."""
    data_dir = os.environ.get("DESKHAND_DATA_DIR")
    return (Path(data_dir) if data_dir else images.parent) / "secrets"


def login_secrets(images: Path) -> set[str]:
    """Names of the secrets with which images below a folder log in; one that cannot be read has none."""
    found = set()
    for path in images.rglob("image.json"):
        try:
            found.add(str(json.loads(path.read_text())["windows"]["login"]["secret"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # no login; what is wrong with an image is said when a desktop asks for it
    return found


def register(
    images: Path,
    name: str,
    disk: Path,
    settings: WindowsSettings,
    *,
    machine: dict[str, int],
    variables: Path | None = None,
) -> Path:
    """Copy a disk into the registry under `name`; its folder. Raises ImageError, leaving nothing behind."""
    if not name or not all(char.isalnum() or char in "-_" for char in name):
        raise ImageError(f"name {name!r}: use letters, digits, - and _")
    _check_disk(disk)
    if (settings.firmware == "uefi") != (variables is not None):
        raise ImageError("firmware uefi needs the variables' file, and only that; give both or none")
    target = images / name
    if target.exists():
        raise ImageError(f"{target} exists; remove it first, or choose another name")
    draft = images / f".draft-{name}-{secrets.token_hex(4)}"
    draft.mkdir(parents=True, mode=0o700)
    try:
        copy = draft / "disk.qcow2"
        subprocess.run(["cp", "--reflink=auto", "--sparse=always", str(disk), str(copy)], check=True)
        copy.chmod(0o440)
        if variables is not None:
            shutil.copyfile(variables, draft / UEFI_VARIABLES)
        description = _description(name, sha256_of(copy), settings, machine)
        (draft / "image.json").write_text(json.dumps(description, indent=1) + "\n")
        os.rename(draft, target)
        return target
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _description(
    name: str, digest: str, settings: WindowsSettings, machine: dict[str, int]
) -> dict[str, Any]:
    return {
        "name": name,
        "sha256": digest,
        "os": "windows",
        "hardware": "plain",
        "agent": None,
        "home": "C:\\Users\\Public",
        "machine": machine,
        "windows": settings.model_dump(mode="json", exclude_defaults=True),
    }


def _check_disk(disk: Path) -> None:
    """A whole qcow2 disk that no machine has open."""
    command = ["qemu-img", "info", "--output=json", str(disk)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise ImageError(f"disk: {result.stderr.strip() or disk}")
    disk_info = json.loads(result.stdout)
    if disk_info["format"] != "qcow2":
        raise ImageError(f"disk: {disk} is {disk_info['format']}, not qcow2; run qemu-img convert -O qcow2")
    if disk_info.get("backing-filename"):
        raise ImageError(
            f"disk: {disk} needs {disk_info['backing-filename']}; run qemu-img convert to join them"
        )
