"""A folder, here or in the place of copies, as a .tar while it is sent: the length is known before."""

import asyncio
import hashlib
import tarfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from webapp.lib.copies.folder_copy import MARK, CopyDamaged, Manifest, opened
from webapp.lib.copies.place import CopiesPlace

BLOCK = tarfile.BLOCKSIZE
END = bytes(tarfile.RECORDSIZE)
"""Two empty blocks end an archive; a whole record of them is usual."""
CHUNK_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True)
class TarMember:
    """One file of the archive."""

    name: str
    num_bytes: int
    modified: int
    open: Callable[[], AbstractContextManager[IO[bytes]]]
    sha256: str = ""
    """What its contents must have; "" = it is not compared."""


def members_of(folder: Path) -> list[TarMember]:
    """The files directly in `folder`, but those of copying."""
    paths = sorted(path for path in folder.iterdir() if path.is_file() and path.name != MARK)
    return [_member(path) for path in paths]


def _member(path: Path) -> TarMember:
    state = path.stat()
    return TarMember(path.name, state.st_size, int(state.st_mtime), lambda: path.open("rb"))


def members_of_copy(place: CopiesPlace, prefix: str, manifest: Manifest) -> list[TarMember]:
    """The files of a copy; reading one that is damaged raises CopyDamaged."""
    now = int(time.time())
    return [
        TarMember(name, file.num_bytes, now, partial(opened, place, prefix, file), file.sha256)
        for name, file in manifest.files.items()
    ]


def tar_bytes(members: list[TarMember]) -> int:
    """Length of `stream_tar`."""
    return sum(BLOCK + one.num_bytes + _padding(one.num_bytes) for one in members) + len(END)


async def stream_tar(folder: str, members: list[TarMember]) -> AsyncIterator[bytes]:
    """The members, below a folder of that name. Raises CopyDamaged."""
    for member in members:
        entry = tarfile.TarInfo(f"{folder}/{member.name}")
        entry.size, entry.mtime, entry.mode = member.num_bytes, member.modified, 0o644
        yield entry.tobuf(tarfile.GNU_FORMAT)
        summed = hashlib.sha256()
        with ExitStack() as stack:
            file = await asyncio.to_thread(stack.enter_context, member.open())
            while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
                summed.update(chunk)
                yield chunk
        if member.sha256 not in ("", summed.hexdigest()):
            raise CopyDamaged(f"{member.name} is not what was copied; its sum differs")
        yield bytes(_padding(member.num_bytes))
    yield END


def _padding(size: int) -> int:
    return -size % BLOCK
