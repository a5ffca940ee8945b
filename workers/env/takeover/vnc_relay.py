"""Connects the web process to the screens of running trajectories: a ticket in, then the VNC server.

    web: pass TICKET\\n  ->  relay: ok\\n and the connected socket itself   (unix sockets: no byte is copied)
    web: TICKET\\n       ->  relay: ok\\n, then RFB both ways                (TCP, from another machine)
    refused: no WHY\\n
One relay per worker process. A trajectory's connections are cut before its desktop is reset, so that the next
one is neither watched nor touched: `shutdown` ends a socket for every process that has it. They end with the
worker for the same reason: the web lets go of a socket when the connection that brought it closes. Bytes wait
in socket buffers only: a slow reader costs nothing.
"""

import asyncio
import atexit
import contextlib
import logging
import os
import socket
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path

from workers.processes.unix_socket import MAX_PATH_BYTES, connect_unix, listen_unix

CHUNK = 1 << 18
TICKET_LIMIT_S = 5.0
MAX_TICKET = 512
STOP_LIMIT_S = 10.0
ACCEPTED = b"ok\n"
PASS = "pass "
NOT_VALID = "the ticket is not valid here: compare secrets and clocks of the two machines"
PREPARING = "the desktop is being prepared"
NO_SERVER = "the desktop's screen does not answer"

Locate = Callable[[], str]
"""The unix socket of the desktop's VNC server at this moment; "" while there is none."""
Join = Callable[[socket.socket, socket.socket], Awaitable[None]]


log = logging.getLogger(__name__)

PROBE_LIMIT_S = 5.0


def socket_path(folder: Path) -> Path:
    """A name of this process's own, short enough for a socket address; those of dead processes go."""
    folder.mkdir(parents=True, exist_ok=True)
    host = socket.gethostname()[:24]  # containers that share the folder have equal process ids
    for old in folder.glob(f"screens-{host}-*.sock"):
        try:
            connect_unix(str(old), PROBE_LIMIT_S).close()
        except ConnectionRefusedError:
            old.unlink(missing_ok=True)
        except OSError:
            log.info("left alone: %s", old)
    path = folder / f"screens-{host}-{os.getpid()}.sock"
    if len(os.fsencode(path)) <= MAX_PATH_BYTES:
        atexit.register(path.unlink, missing_ok=True)
        return path
    return Path(tempfile.mkdtemp(prefix="screens-")) / "s"


class Relay:
    """The screens of one worker process, served by a thread of its own."""

    def __init__(self, folder: Path, read_ticket: Callable[[str], int | None], host: str = "") -> None:
        self._read_ticket = read_ticket
        self._host = socket.gethostname() if host == "auto" else host
        self._path = socket_path(folder)
        self._screens: dict[int, Locate] = {}
        self._connections: dict[int, set[asyncio.Task[None]]] = {}
        self._answering: set[asyncio.Task[None]] = set()
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
        listeners = [listen_unix(self._path)]
        addresses = [f"unix:{self._path}"]
        if self._host:
            listeners.append(socket.create_server((self._host, 0)))
            addresses.append(f"tcp:{self._host}:{listeners[-1].getsockname()[1]}")
        accepting = [asyncio.create_task(self._accept(listener)) for listener in listeners]
        self.addresses = addresses
        started.set()
        await self._stopping.wait()
        await _end(accepting)
        for listener in listeners:
            listener.close()
        await _end(self._answering)

    async def _accept(self, listener: socket.socket) -> None:
        listener.setblocking(False)
        while True:
            connection, _ = await self._loop.sock_accept(listener)
            connection.setblocking(False)
            if connection.family != socket.AF_UNIX:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            task = asyncio.create_task(self._answer(connection))
            self._answering.add(task)
            task.add_done_callback(self._answered)

    def _answered(self, task: asyncio.Task[None]) -> None:
        """One that failed has closed its connection without a word: the log says why."""
        self._answering.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("a screen's connection failed", exc_info=error)

    async def _answer(self, web: socket.socket) -> None:
        """One connection of the web process, from its ticket to its end."""
        with web:
            try:
                words = await self._first_line(web)
                # It asks the database, which no event loop may wait for.
                trajectory_id = await asyncio.to_thread(self._read_ticket, words.removeprefix(PASS))
                join = self._lend if words.startswith(PASS) else self._both_ways
                why = NOT_VALID if trajectory_id is None else await self._join(trajectory_id, web, join)
                if why:
                    await self._loop.sock_sendall(web, f"no {why}\n".encode())
            except OSError as error:
                log.info("a screen's connection ended: %s", error)

    async def _first_line(self, web: socket.socket) -> str:
        """ "" when there is none in time. The web says nothing more until it is answered."""
        line = b""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TICKET_LIMIT_S):
                while b"\n" not in line and len(line) <= MAX_TICKET:
                    data = await self._loop.sock_recv(web, MAX_TICKET)
                    if not data:
                        return ""
                    line += data
        return line.decode("ascii", errors="replace").strip()

    async def _join(self, trajectory_id: int, web: socket.socket, join: Join) -> str:
        """Connected until one side ends, or at once why not; "" when it was connected."""
        locate = self._screens.get(trajectory_id)
        path = locate() if locate else ""
        if not path:
            return PREPARING
        try:
            desktop = connect_unix(path, TICKET_LIMIT_S)
        except OSError as error:
            log.info("no VNC server at %s: %s", path, error)
            return NO_SERVER
        with desktop:
            desktop.setblocking(False)
            task = asyncio.current_task()
            assert task is not None
            if trajectory_id not in self._screens:  # withdrawn just now, and cut without us
                return PREPARING
            self._connections.setdefault(trajectory_id, set()).add(task)
            try:
                await join(web, desktop)
            finally:
                self._connections.get(trajectory_id, set()).discard(task)
        return ""

    async def _lend(self, web: socket.socket, desktop: socket.socket) -> None:
        """Give the desktop's socket itself away until the web's connection ends or ours is cancelled."""
        try:
            socket.send_fds(web, [ACCEPTED], [desktop.fileno()])
            with contextlib.suppress(ConnectionError):
                while await self._loop.sock_recv(web, MAX_TICKET):
                    pass
        finally:
            with contextlib.suppress(OSError):  # the desktop has gone before
                desktop.shutdown(socket.SHUT_RDWR)

    async def _both_ways(self, web: socket.socket, desktop: socket.socket) -> None:
        """Copy until either side has nothing more to say."""
        await self._loop.sock_sendall(web, ACCEPTED)
        copies = [
            asyncio.create_task(self._copy(web, desktop)),
            asyncio.create_task(self._copy(desktop, web)),
        ]
        try:
            await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _end(copies)

    async def _copy(self, source: socket.socket, target: socket.socket) -> None:
        """From socket buffer to socket buffer, through one piece of memory of our own."""
        memory = memoryview(bytearray(CHUNK))
        with contextlib.suppress(ConnectionError):
            while length := await self._loop.sock_recv_into(source, memory):
                await self._loop.sock_sendall(target, memory[:length])

    async def _cut(self, trajectory_id: int) -> None:
        """End a trajectory's connections and wait until they have ended."""
        await _end(self._connections.pop(trajectory_id, set()))


async def _end(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel and wait."""
    ending = list(tasks)
    for task in ending:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)
