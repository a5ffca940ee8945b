"""One loopback network of several hosts, for the ranks of one trainer.

Ranks of host K listen on 127.X.Y.(K+1) of their own machine only. On every other host a forwarder listens on
the same address and port, and carries each connection to host K by TLS. So gloo and its store connect as if
all ranks were on one machine, and what they unpickle came from a member: both ends show the gang's
certificate, and trust that one only. The one port that listens on a network is the mesh's own, on the address
that was configured.

    rank on A -> 127.X.Y.2:P (forwarder of A) -> TLS -> mesh of B -> 127.X.Y.2:P (rank on B)

Between meshes a connection begins with one line of JSON, `Asked`. A host that does not answer for
LOST_AFTER_S is lost, and with it the attempt.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from training.distributed.gang import Gang
from training.distributed.mesh_lines import Asked, exchange, read_asked

logger = logging.getLogger("training")

CHUNK_BYTES = 1 << 20
ANSWER_S = 10.0
AT_ONCE_S = 2.0
BEAT_S = 1.0
LOST_AFTER_S = 15.0
GATHER_S = 120.0
"""How long the first host waits for the last one."""


class GangIncomplete(Exception):
    """Raised when the hosts of a gang do not find each other; the message names those that are missing."""


class HostMesh:
    """This host's part; a thread of its own. Use as a context manager."""

    def __init__(self, gang: Gang, folder: Path, on_loss: Callable[[int], None]) -> None:
        """`folder`: private, for the socket by which ranks announce what they listen on. `on_loss` is called
        once, in the mesh's thread, with the host that fell silent."""
        self.socket_path = folder / "mesh.sock"
        self._gang = gang
        self._on_loss = on_loss
        self._server_tls, self._client_tls = gang.contexts()
        self._own_ports: set[int] = set()
        self._forwarders: dict[tuple[int, int], asyncio.Server] = {}
        self._finished: set[int] = set()
        self._store_port = 0
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="mesh", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._call(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self._call(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def gather(self, store_port: int = 0) -> int:
        """Wait until every host answers; the port of the first host's store, which gives it as `store_port`.

        Raises GangIncomplete after GATHER_S.
        """
        return self._call(self._gather(store_port))

    def finish(self) -> None:
        """This host's ranks have all ended as planned: its silence is no loss."""
        self._call(self._tell_all(Asked("done", self._gang.host)))

    def silent_hosts(self) -> list[int]:
        """Those that do not answer now."""
        return self._call(self._silent_hosts())

    def _call(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _start(self) -> None:
        name, port = self._gang.addresses[self._gang.host]
        self._servers = [
            await asyncio.start_server(
                self._serve_member, self._gang.listen or name, port, ssl=self._server_tls, limit=CHUNK_BYTES
            ),
            await asyncio.start_unix_server(self._serve_rank, self.socket_path),
        ]

    async def _stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        for server in [*self._servers, *self._forwarders.values()]:
            server.close()

    async def _gather(self, store_port: int) -> int:
        deadline = time.monotonic() + GATHER_S
        if store_port:
            self._own_ports.add(store_port)
            self._store_port = store_port
        missing = set(self._gang.others)
        while missing or not self._store_port:
            for host in sorted(missing):
                with contextlib.suppress(OSError, ValueError, TimeoutError):
                    answer = await self._ask(host, Asked("hello", self._gang.host))
                    if answer["port"] and not self._store_port:
                        await self._listen(0, answer["port"])
                        self._store_port = answer["port"]
                    if answer["port"] or host != 0:
                        missing.discard(host)
            if time.monotonic() > deadline:
                names = ", ".join(":".join(map(str, self._gang.addresses[host])) for host in sorted(missing))
                raise GangIncomplete(f"after {GATHER_S:.0f} s there is no answer from {names}")
            await asyncio.sleep(0.2)
        for host in self._gang.others:
            self._start_task(self._watch(host))
        return self._store_port

    async def _watch(self, host: int) -> None:
        """Until the host has finished or is lost."""
        heard = time.monotonic()
        while host not in self._finished:
            await asyncio.sleep(BEAT_S)
            with contextlib.suppress(OSError, ValueError, TimeoutError):
                await self._ask(host, Asked("hello", self._gang.host))
                heard = time.monotonic()
            if time.monotonic() - heard > LOST_AFTER_S and host not in self._finished:
                self._on_loss(host)
                return

    async def _silent_hosts(self) -> list[int]:
        async def is_silent(host: int) -> bool:
            try:
                async with asyncio.timeout(AT_ONCE_S):
                    await self._ask(host, Asked("hello", self._gang.host))
            except (OSError, ValueError, TimeoutError):
                return host not in self._finished
            return False

        found = await asyncio.gather(*map(is_silent, self._gang.others))
        return [host for host, silent in zip(self._gang.others, found, strict=True) if silent]

    async def _tell_all(self, asked: Asked) -> None:
        for host in self._gang.others:
            with contextlib.suppress(OSError, ValueError, TimeoutError):
                await self._ask(host, asked)

    async def _ask(self, host: int, asked: Asked) -> dict[str, Any]:
        """Raises OSError, TimeoutError, ValueError for a host that does not answer as it should."""
        async with asyncio.timeout(ANSWER_S):
            reader, writer = await self._connect(host)
            try:
                return await exchange(reader, writer, asked)
            finally:
                writer.close()

    async def _connect(self, host: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        name, port = self._gang.addresses[host]
        reader, writer = await asyncio.open_connection(name, port, ssl=self._client_tls, limit=CHUNK_BYTES)
        _notice_cuts(writer)
        return reader, writer

    async def _serve_member(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _notice_cuts(writer)
        try:
            async with asyncio.timeout(ANSWER_S):
                asked = read_asked(await reader.readline())
            match asked.do:
                case "listen":
                    await self._listen(asked.host, asked.port)
                case "done":
                    self._finished.add(asked.host)
                case "connect":
                    await self._bring(asked.port, reader, writer)
                    return
            writer.write(json.dumps({"port": self._store_port}).encode() + b"\n")
            await writer.drain()
        except (OSError, ValueError, TimeoutError) as error:
            logger.warning("mesh: a connection ended: %s", error)
        finally:
            writer.close()

    async def _bring(self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A member's connection to what a rank of ours listens on; to nothing else of this machine."""
        if port not in self._own_ports:
            raise ValueError(f"no rank of this host announced port {port}")
        own_reader, own_writer = await asyncio.open_connection(
            self._gang.loopback_of(self._gang.host), port, limit=CHUNK_BYTES
        )
        writer.write(b"{}\n")
        await _join(reader, writer, own_reader, own_writer)

    async def _listen(self, host: int, port: int) -> None:
        """Forward what is sent to that host's port."""
        if host not in self._gang.others:
            raise ValueError(f"{host} is no other host of this gang")
        if (host, port) in self._forwarders:
            return

        async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                far_reader, far_writer = await self._connect(host)
                await exchange(far_reader, far_writer, Asked("connect", self._gang.host, port))
                await _join(reader, writer, far_reader, far_writer)
            except (OSError, ValueError, TimeoutError) as error:
                logger.warning("mesh: host %d port %d: %s", host, port, error)
            finally:
                writer.close()

        self._forwarders[host, port] = await asyncio.start_server(
            forward, self._gang.loopback_of(host), port, limit=CHUNK_BYTES
        )

    async def _serve_rank(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A rank of ours listens on a port: answered when it can be reached from every host."""
        try:
            port = read_asked(await reader.readline()).port
            self._own_ports.add(port)
            for host in self._gang.others:
                await self._ask(host, Asked("listen", self._gang.host, port))
            writer.write(b"{}\n")
            await writer.drain()
        except (OSError, ValueError, TimeoutError) as error:
            logger.warning("mesh: port not announced: %s", error)
        finally:
            writer.close()

    def _start_task(self, work: Any) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _join(
    one_reader: asyncio.StreamReader,
    one_writer: asyncio.StreamWriter,
    other_reader: asyncio.StreamReader,
    other_writer: asyncio.StreamWriter,
) -> None:
    """Carry bytes both ways until one side ends; then both do."""
    ways = [
        asyncio.ensure_future(_carry(one_reader, other_writer)),
        asyncio.ensure_future(_carry(other_reader, one_writer)),
    ]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        one_writer.close()
        other_writer.close()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()


def _notice_cuts(writer: asyncio.StreamWriter) -> None:
    """An end that is gone without a word is an error soon, not after hours."""
    own = writer.get_extra_info("socket")
    own.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    own.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * LOST_AFTER_S))
    own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
