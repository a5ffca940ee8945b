"""Discs (ISO 9660 with Joliet and Rock Ridge) that carry files into a guest without any driver.

Windows reads the Joliet names, Linux the Rock Ridge ones; both keep case, spaces and Unicode.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from pathlib import Path

import pycdlib

MEDIA = Path(__file__).resolve().parent / "media"
MAX_NAME = 64
"""Characters of a Joliet name."""
MAX_BYTES = 4 << 30
_FORBIDDEN = re.compile(r'[\x00-\x1f*/:;?\\"<>|]')


class DiscError(ValueError):
    """Raised when files cannot be put on a disc; the message names the file."""


def make_disc(files: Mapping[str, bytes], label: str = "DESKHAND") -> bytes:
    """A disc's bytes. `files`: relative path with / -> content; folders follow from the paths.

    Raises DiscError for a path that the file systems cannot hold, or for too much data.
    """
    if not re.fullmatch(r"[A-Z0-9_]{1,16}", label):
        raise DiscError(f"label {label!r}: use 1 to 16 of A-Z, 0-9 and _")
    if sum(map(len, files.values())) > MAX_BYTES:
        raise DiscError(f"the files are larger than {MAX_BYTES >> 30} GiB together")
    iso = pycdlib.PyCdlib()
    iso.new(interchange_level=3, joliet=3, rock_ridge="1.09", vol_ident=label)
    try:
        plain = _PlainNames()
        for folder in sorted({parent for path in files for parent in _parents(path)}):
            _add_folder(iso, plain, folder)
        for path, data in files.items():
            name = path.rsplit("/", 1)[-1]
            iso.add_fp(io.BytesIO(data), len(data), plain.file(path), rr_name=name, joliet_path=f"/{path}")
        out = io.BytesIO()
        iso.write_fp(out)
    finally:
        iso.close()
    return out.getvalue()


def guest_files(agent_installer: Path | None = None) -> dict[str, bytes]:
    """What the disc for preparing a Windows image holds; the agent's installer comes from the user."""
    files = {path.name: path.read_bytes() for path in sorted(MEDIA.iterdir())}
    if agent_installer is not None:
        files["qemu-ga-x86_64.msi"] = agent_installer.read_bytes()
    return files


def _parents(path: str) -> list[str]:
    """The folders above a path, outermost first; refuses what no guest could read."""
    parts = path.split("/")
    for part in parts:
        if part in ("", ".", "..") or len(part) > MAX_NAME or _FORBIDDEN.search(part):
            raise DiscError(f"{path!r} cannot be on a disc: {part!r} is no file name (up to {MAX_NAME} long)")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]


def _add_folder(iso: pycdlib.PyCdlib, plain: _PlainNames, folder: str) -> None:
    name = folder.rsplit("/", 1)[-1]
    iso.add_directory(plain.folder(folder), rr_name=name, joliet_path=f"/{folder}")


class _PlainNames:
    """Numbered names for the plain ISO 9660 tree, which no guest reads: only its form is required."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {"": ""}
        self._count = 0

    def folder(self, path: str) -> str:
        self._folders[path] = f"{self._above(path)}/D{self._next()}"
        return self._folders[path]

    def file(self, path: str) -> str:
        return f"{self._above(path)}/F{self._next()}.;1"

    def _above(self, path: str) -> str:
        return self._folders[path.rpartition("/")[0]]

    def _next(self) -> int:
        self._count += 1
        return self._count
