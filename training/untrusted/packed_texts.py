"""Texts of desktops as they are kept and sent: compressed, known by the sha256 of the text itself."""

import gzip
import hashlib
import zlib

MAX_BYTES = 32 << 20
"""Of a text; more is refused from another machine."""


class NotAText(ValueError):
    """Raised for bytes that are no compressed text of the given digest."""


def packed(text: str) -> bytes:
    """The text's file; the same bytes for the same text."""
    return gzip.compress(text.encode(), mtime=0)


def is_packed(body: bytes) -> bool:
    """Whether the bytes are a text's file and not a picture's."""
    return body.startswith(b"\x1f\x8b")


def unpacked(body: bytes, sha256: str) -> str:
    """The text of a file. Raises NotAText."""
    reader = zlib.decompressobj(wbits=31)
    try:
        raw = reader.decompress(body, MAX_BYTES)
    except zlib.error as error:
        raise NotAText(f"it is not compressed: {error}") from error
    if not reader.eof or hashlib.sha256(raw).hexdigest() != sha256:
        raise NotAText("its bytes are others")
    return raw.decode()
