"""The agent's handle on the process that reads widgets.

It lives among the evaluators' commands of a space, out of programs' reach, from the first read to the end of
the space: making one for every read took longer than a small tree. It runs `workers.guest.accessibility`.
"""

import asyncio
import contextlib
import os
import socket
from typing import Literal

from workers.guest.http_server import HttpError
from workers.guest.preloaded_python import Job
from workers.guest.program_routes import ProgramRoutes
from workers.guest.widgets import HEAD

LIMIT_S = 60.0
CHUNK = 1 << 18


class WidgetReader:
    """Starts it on first use, and again when it was ended."""

    def __init__(self, programs: ProgramRoutes) -> None:
        self._programs = programs
        self._job: Job | None = None
        self._stream: socket.socket | None = None
        self._turn = asyncio.Lock()

    @property
    def pid(self) -> int:
        """0 = there is none."""
        return self._job.pid if self._job is not None and not self._job.ended.is_set() else 0

    def forget(self) -> None:
        """End it. A read that waits for it sees its end."""
        if self._job is not None and self.pid:
            self._job.kill()
        if not self._turn.locked():
            self._close()

    def _close(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._job = self._stream = None

    async def read(self, what: Literal["tree", "terminal"]) -> str:
        """Raises HttpError 500 with its words."""
        async with self._turn:
            if self._stream is not None:
                with contextlib.suppress(EOFError, OSError):  # an evaluation's end took it along
                    return await self._ask(what)
                self._close()
            await self._start()
            try:
                return await self._ask(what)
            except (EOFError, OSError) as error:
                self._close()
                raise HttpError(500, "accessibility: its reader ended") from error

    async def _start(self) -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs, open(os.devnull, "wb") as nothing:
            what = {"tool": "accessibility", "arguments": []}
            self._job = await self._programs.interpret(what, {}, theirs.fileno(), nothing.fileno())
        self._stream = ours

    async def _ask(self, what: str) -> str:
        """Raises EOFError or OSError when it has ended, and HttpError."""
        stream = self._stream
        assert stream is not None
        try:
            async with asyncio.timeout(LIMIT_S):
                await asyncio.get_running_loop().sock_sendall(stream, f"{what}\n".encode())
                length, is_good = HEAD.unpack(await _exactly(stream, HEAD.size))
                text = (await _exactly(stream, length)).decode()
        except TimeoutError as error:
            self.forget()
            raise HttpError(500, f"accessibility: no end after {LIMIT_S:g} s") from error
        if not is_good:
            raise HttpError(500, f"accessibility: {text[-400:]}")
        return text


async def _exactly(stream: socket.socket, count: int) -> bytes:
    """Raises EOFError or OSError."""
    whole = bytearray()
    while len(whole) < count:
        got = await asyncio.get_running_loop().sock_recv(stream, min(count - len(whole), CHUNK))
        if not got:
            raise EOFError
        whole += got
    return bytes(whole)
