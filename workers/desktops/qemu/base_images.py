"""The registry of base images: one folder per image, read and checked here, never written.

IMAGES/NAME/{disk.qcow2, vmlinuz, initrd.img, image.json}
"""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from workers.desktops.contract import EnvError

BLOCK_BYTES = 1 << 20
HINT = "build it with `make guest-image`"
QCOW2_MAGIC = b"QFI\xfb"


class ImageMachine(BaseModel):
    """The machine that the image asks for."""

    model_config = ConfigDict(extra="ignore")

    memory_mb: int = Field(default=1024, ge=64)
    vcpus: int = Field(default=1, ge=1)


class AgentInfo(BaseModel):
    model_config = ConfigDict(extra="ignore")

    port: int = Field(default=5000, ge=1, le=65535)
    """TCP port in the guest on which its agent serves HTTP."""


class Manifest(BaseModel):
    """image.json, as far as it matters here."""

    model_config = ConfigDict(extra="ignore")

    name: str
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    """Of disk.qcow2."""
    os: str = ""
    arch: str = "x86_64"
    kernel_args: str | list[str] = ""
    """Kernel command line; empty = the disk brings its own boot loader."""
    agent: AgentInfo | None = AgentInfo()
    """None: a guest without an agent, driven by screen and keys only."""
    machine: ImageMachine = ImageMachine()
    hardware: Literal["virtio", "plain"] = "virtio"
    """Which devices its guest has drivers for: `workers.desktops.qemu.devices.HARDWARE`."""
    home: str = "/home/user"

    @property
    def command_line(self) -> str:
        return self.kernel_args if isinstance(self.kernel_args, str) else " ".join(self.kernel_args)


@dataclass(frozen=True)
class GuestImage:
    """One base image whose files were checked."""

    folder: Path
    manifest: Manifest

    @property
    def disk(self) -> Path:
        return self.folder / "disk.qcow2"

    @property
    def kernel(self) -> Path | None:
        """The kernel that QEMU loads itself; None when the disk boots by firmware."""
        path = self.folder / "vmlinuz"
        return path if path.exists() else None

    @property
    def initrd(self) -> Path | None:
        path = self.folder / "initrd.img"
        return path if path.exists() else None


class ImageError(EnvError):
    """Raised when an image is missing, damaged or not what it says."""

    def __init__(self, message: str) -> None:
        super().__init__(message, permanent=True)


@dataclass
class ImageStore:
    """The images of one folder. A disk is hashed once per process and content."""

    folder: Path
    _checked: dict[tuple[str, int, int], str] = field(default_factory=dict)
    """(path, size, mtime ns) -> sha256"""

    def names(self) -> list[str]:
        """Every image that has a description, checked or not."""
        return sorted(path.parent.name for path in self.folder.glob("*/image.json"))

    def load(self, name: str) -> GuestImage:
        """An image by name, its disk checked against its description. Reads the whole disk the first time.

        Raises ImageError naming the file and what to do.
        """
        folder = (self.folder / name).resolve()  # a newer version may take its place meanwhile
        if not name or "/" in name or name.startswith("."):
            raise ImageError(f"image: {name!r} is no image name")
        if not (folder / "image.json").exists():
            known = ", ".join(self.names()) or "none"
            raise ImageError(f"image {name!r} is not in {self.folder} (there: {known}); {HINT}")
        image = GuestImage(folder, self._manifest(folder))
        if image.manifest.name != name:
            raise ImageError(f"{folder}/image.json describes {image.manifest.name!r}; {HINT} again")
        if image.manifest.command_line and image.kernel is None:
            raise ImageError(f"{folder}/vmlinuz is missing; {HINT} again")
        if not image.disk.exists():
            raise ImageError(f"{image.disk} is missing; {HINT} again")
        self._check_disk(image)
        return image

    def _manifest(self, folder: Path) -> Manifest:
        path = folder / "image.json"
        try:
            return Manifest.model_validate(json.loads(path.read_text()))
        except ValidationError as exc:
            first = exc.errors()[0]
            field_name = ".".join(str(part) for part in first["loc"])
            raise ImageError(f"{path}: {field_name}: {first['msg']}; {HINT} again") from exc
        except ValueError as exc:
            raise ImageError(f"{path} is no JSON ({exc}); {HINT} again") from exc

    def _check_disk(self, image: GuestImage) -> None:
        stat = image.disk.stat()
        with open(image.disk, "rb") as file:
            if file.read(4) != QCOW2_MAGIC:
                raise ImageError(f"{image.disk} is no qcow2 image; {HINT} again")
        key = (str(image.disk), stat.st_size, stat.st_mtime_ns)
        if key not in self._checked:
            self._checked[key] = sha256_of(image.disk)
        if self._checked[key] != image.manifest.sha256:
            message = f"{image.disk} is damaged or was changed: its sha256 is not that of image.json"
            raise ImageError(f"{message}; {HINT} again")


def sha256_of(path: Path) -> str:
    """Hash of a file's bytes."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()
