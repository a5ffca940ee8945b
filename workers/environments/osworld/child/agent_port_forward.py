"""A loopback port that leads to the agent of the current desktop, since DesktopEnv knows only host:port.

Lives in a thread of this process and ends with it. Where the agent is stands in a file of the process's
own folder, which the parent rewrites, so a desktop may be replaced behind the port.
"""

import asyncio
import contextlib
import os
import threading

CHUNK = 1 << 16


class Bridge:
    """127.0.0.1:port -> the address in `file`: a unix socket's path, or HOST:PORT.

    With `inner_port` it leads on to that loopback port of the desktop, by the agent's CONNECT.
    """

    def __init__(self, file: str, inner_port: int = 0) -> None:
        self._inner_port = inner_port
        self._file = os.path.abspath(file)  # some evaluators change the folder
        self._loop = asyncio.new_event_loop()
        self.port = 0
        ready = threading.Event()
        threading.Thread(target=self._run, args=(ready,), name="bridge", daemon=True).start()
        ready.wait()

    def _run(self, ready: threading.Event) -> None:
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        self._loop.run_forever()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner_reader, inner_writer = await connect(self._file)
            if self._inner_port:
                await lead_on(inner_reader, inner_writer, self._inner_port)
        except (OSError, asyncio.IncompleteReadError):
            writer.close()
            return
        away = asyncio.create_task(pump(reader, inner_writer))
        await pump(inner_reader, writer)
        away.cancel()
        for end in (writer, inner_writer):
            end.close()


async def connect(file: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to the agent. Raises OSError."""
    with open(file) as opened:
        host, _, port = opened.read().strip().rpartition(":")
    if host:
        return await asyncio.open_connection(host, int(port))
    return await asyncio.open_unix_connection(port)


async def lead_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
    """Have the agent connect this connection to a port of its own machine. Raises OSError."""
    writer.write(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    if b" 200 " not in head.splitlines()[0]:
        writer.close()
        raise ConnectionRefusedError(f"nothing answers on port {port} of the desktop")


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until one side closes."""
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
