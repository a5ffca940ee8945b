"""A folder as a .tar while it is sent: no second copy on the disk, and the length is known before."""

from __future__ import annotations

import asyncio
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

BLOCK = tarfile.BLOCKSIZE
END = bytes(tarfile.RECORDSIZE)
"""Two empty blocks end an archive; a whole record of them is usual."""
CHUNK_BYTES = 4 * 2**20


def tar_bytes(folder: Path) -> int:
    """Length of `stream_tar(folder)`."""
    sizes = [path.stat().st_size for path in _files(folder)]
    return sum(BLOCK + size + _padding(size) for size in sizes) + len(END)


async def stream_tar(folder: Path) -> AsyncIterator[bytes]:
    """The files directly in `folder`, below its name."""
    for path in _files(folder):
        size = path.stat().st_size
        entry = tarfile.TarInfo(f"{folder.name}/{path.name}")
        entry.size, entry.mtime, entry.mode = size, int(path.stat().st_mtime), 0o644
        yield entry.tobuf(tarfile.GNU_FORMAT)
        with path.open("rb") as file:
            while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
                yield chunk
        yield bytes(_padding(size))
    yield END


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file())


def _padding(size: int) -> int:
    return -size % BLOCK
