"""Files that are made while they are sent."""

from collections.abc import AsyncIterator, Iterable, Iterator
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

from asgiref.sync import sync_to_async

PICTURES = (".png", ".jpg")
"""They are small already."""


class _Pieces:
    """A file that is only written, taken away piece by piece."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Nothing is kept back."""

    def close(self) -> None:
        """Nothing is open."""

    def take(self) -> bytes:
        found = b"".join(self._parts)
        self._parts.clear()
        return found


def zip_pieces(files: Iterable[tuple[str, str | bytes]]) -> Iterator[bytes]:
    """The .zip of these (name, content), of which one is in memory at a time."""
    out = _Pieces()
    with ZipFile(out, "w") as archive:
        for name, content in files:
            archive.writestr(name, content, ZIP_STORED if name.endswith(PICTURES) else ZIP_DEFLATED)
            yield out.take()
    yield out.take()


async def stream(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """For a StreamingHttpResponse: what makes a piece may read the database."""
    take = sync_to_async(lambda: next(pieces, None))
    while (piece := await take()) is not None:
        yield piece
