"""The env worker's door to its live screens: a ticket in, then the raw bytes of the desktop's VNC server.

    web: TICKET\\n   ->   relay: ok\\n | no\\n   ->   RFB both ways
One relay per worker process, on a unix socket and, where the web runs on another machine, on TCP. A
trajectory's connections are cut before its desktop is reset, so nobody watches or touches the next one;
they die with the worker for the same reason. Bytes wait in socket buffers only: a slow reader costs nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from workers.providers.unix_socket import MAX_PATH_BYTES, connect_unix

log = logging.getLogger(__name__)

CHUNK = 1 << 16
TICKET_LIMIT_S = 5.0
MAX_TICKET = 512
STOP_LIMIT_S = 10.0
ACCEPTED, REFUSED = b"ok\n", b"no\n"

Locate = Callable[[], str]
"""The unix socket of the desktop's VNC server at this moment; "" while there is none."""


class Relay:
    """The screens of one worker process, served by a thread of its own."""

    def __init__(self, folder: Path, read_ticket: Callable[[str], int | None], host: str = "") -> None:
        self._read_ticket = read_ticket
        self._host = socket.gethostname() if host == "auto" else host
        self._path = _socket_path(folder)
        self._screens: dict[int, Locate] = {}
        self._connections: dict[int, set[asyncio.Task[None]]] = {}
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self.addresses: list[str] = []
        """Where the web process finds this relay, best first."""
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), name="screens", daemon=True)
        self._thread.start()
        if not started.wait(STOP_LIMIT_S) or not self.addresses:
            raise OSError(f"cannot listen on {self._path}; see the log")

    # -- called by the worker's threads -------------------------------------------------------

    @contextlib.contextmanager
    def offered(self, trajectory_id: int, locate: Locate) -> Iterator[list[str]]:
        """Serve this trajectory's screen inside the block; afterwards every connection to it is closed."""
        self._screens[trajectory_id] = locate
        try:
            yield self.addresses
        finally:
            del self._screens[trajectory_id]
            asyncio.run_coroutine_threadsafe(self._cut(trajectory_id), self._loop).result(STOP_LIMIT_S)

    def close(self) -> None:
        """Stop serving. Idempotent."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join(STOP_LIMIT_S)
        self._path.unlink(missing_ok=True)

    # -- on the relay's own thread ------------------------------------------------------------

    def _run(self, started: threading.Event) -> None:
        try:
            self._loop.run_until_complete(self._serve(started))
        except OSError:
            log.exception("screens cannot be offered")
        finally:
            started.set()
            self._loop.close()

    async def _serve(self, started: threading.Event) -> None:
        self._path.unlink(missing_ok=True)
        before = os.umask(0o177)  # nobody else may even ask
        try:
            servers = [await asyncio.start_unix_server(self._answer, str(self._path), limit=MAX_TICKET)]
        finally:
            os.umask(before)
        addresses = [f"unix:{self._path}"]
        if self._host:
            server = await asyncio.start_server(self._answer, self._host, 0, limit=MAX_TICKET)
            servers.append(server)
            addresses.append(f"tcp:{self._host}:{server.sockets[0].getsockname()[1]}")
        self.addresses = addresses
        started.set()
        await self._stopping.wait()
        for server in servers:
            server.close()
        for trajectory_id in list(self._connections):
            await self._cut(trajectory_id)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of the web process, from its ticket to its end."""
        try:
            trajectory_id = await self._admit(reader)
            if trajectory_id is None or not await self._join(trajectory_id, reader, writer):
                writer.write(REFUSED)
        except OSError as error:
            log.info("a screen's connection ended: %s", error)
        finally:
            writer.close()

    async def _admit(self, reader: asyncio.StreamReader) -> int | None:
        try:
            line = await asyncio.wait_for(reader.readline(), TICKET_LIMIT_S)
        except (TimeoutError, ValueError):
            return None
        trajectory_id = self._read_ticket(line.decode("ascii", errors="replace").strip())
        return trajectory_id if trajectory_id in self._screens else None

    async def _join(
        self, trajectory_id: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Copy both ways until one side ends; False when the desktop has no VNC server just now."""
        locate = self._screens.get(trajectory_id)
        path = locate() if locate else ""
        if not path:
            return False
        try:
            desktop = await asyncio.open_unix_connection(sock=connect_unix(path))
        except OSError as error:
            log.info("no VNC server at %s: %s", path, error)
            return False
        task = asyncio.current_task()
        assert task is not None
        if trajectory_id not in self._screens:  # withdrawn while we connected, and cut without us
            desktop[1].transport.abort()
            return False
        self._connections.setdefault(trajectory_id, set()).add(task)
        try:
            writer.write(ACCEPTED)
            await _both_ways((reader, writer), desktop)
        except asyncio.CancelledError:
            if trajectory_id in self._screens and not self._stopping.is_set():
                raise
        finally:
            self._connections.get(trajectory_id, set()).discard(task)
            desktop[1].transport.abort()
            writer.transport.abort()
        return True

    async def _cut(self, trajectory_id: int) -> None:
        """End a trajectory's connections and wait until they have ended."""
        tasks = self._connections.pop(trajectory_id, set())
        for task in set(tasks):
            task.cancel()
        await asyncio.gather(*set(tasks), return_exceptions=True)


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _both_ways(one: Stream, other: Stream) -> None:
    """Until either side has nothing more to say."""
    copies = [asyncio.create_task(_copy(one[0], other[1])), asyncio.create_task(_copy(other[0], one[1]))]
    try:
        await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for copy in copies:
            copy.cancel()
        await asyncio.gather(*copies, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()


def _socket_path(folder: Path) -> Path:
    """A name of this process's own, short enough for a socket address; those of dead processes go."""
    folder.mkdir(parents=True, exist_ok=True)
    host = socket.gethostname()[:24]  # containers that share the folder have equal process ids
    for old in folder.glob(f"screens-{host}-*.sock"):
        try:
            connect_unix(str(old), TICKET_LIMIT_S).close()
        except ConnectionRefusedError:
            old.unlink(missing_ok=True)
        except OSError:
            log.info("left alone: %s", old)
    path = folder / f"screens-{host}-{os.getpid()}.sock"
    if len(os.fsencode(path)) <= MAX_PATH_BYTES:
        return path
    return Path(tempfile.mkdtemp(prefix="screens-")) / "s"
