"""What meshes of hosts, and ranks and their mesh, say to each other: one line of JSON each way."""

from __future__ import annotations

import asyncio
import json
import socket
from dataclasses import dataclass
from typing import Any, Literal, get_args

ANNOUNCE_S = 120.0

Verb = Literal["hello", "store", "listen", "connect", "done"]


@dataclass(frozen=True, slots=True)
class Asked:
    """The first line of a connection between meshes, or from a rank to its own."""

    do: Verb
    host: int = -1
    """Who asks."""
    port: int = 0

    def line(self) -> bytes:
        return json.dumps({"do": self.do, "host": self.host, "port": self.port}).encode() + b"\n"


def announce(socket_path: str, port: int) -> None:
    """Called by a rank: returns when every host reaches what it listens on. Raises OSError."""
    with socket.socket(socket.AF_UNIX) as own:
        own.settimeout(ANNOUNCE_S)
        own.connect(socket_path)
        own.sendall(Asked("listen", port=port).line())
        if not own.makefile("rb").readline():
            raise ConnectionError(f"not every host of the gang took note of port {port}")


def read_asked(line: bytes) -> Asked:
    """Raises ValueError."""
    found = json.loads(line)
    if not isinstance(found, dict) or found.keys() != {"do", "host", "port"}:
        raise ValueError("not a line of a mesh")
    if found["do"] not in get_args(Verb):
        raise ValueError(f"a mesh does not {found['do']!r}")
    if not isinstance(found["host"], int) or not isinstance(found["port"], int):
        raise ValueError("host and port are numbers")
    return Asked(found["do"], found["host"], found["port"])


async def exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: Asked
) -> dict[str, Any]:
    writer.write(asked.line())
    await writer.drain()
    answer = await reader.readline()
    if not answer:
        raise ConnectionError(f"{asked.do} was not answered")
    found = json.loads(answer)
    return found if isinstance(found, dict) else {}
