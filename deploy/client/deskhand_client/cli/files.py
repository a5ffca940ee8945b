"""Files that the server sends."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from deskhand_client.cli.output import Exit, fail


def write_file(pieces: Iterable[bytes], output: Path | None) -> None:
    """To the file, complete or not at all; to stdout without one."""
    if output is None:
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return
    part = output.with_name(output.name + ".part")
    try:
        with part.open("wb") as stream:
            for piece in pieces:
                stream.write(piece)
        part.replace(output)
    except OSError as error:
        fail(f"{output}: {error}", Exit.REFUSED)
    finally:
        part.unlink(missing_ok=True)
