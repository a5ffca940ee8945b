"""Questions that tell whether a process is ready; each is an async function without arguments."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from webapp.lib.supervisor.supervised_process import Probe

TIMEOUT_S = 2.0


def http_ok(url: str) -> Probe:
    """Ready when a GET answers 200."""
    parts = urlsplit(url)
    request = f"GET {parts.path or '/'} HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
    connect = partial(asyncio.open_connection, parts.hostname, parts.port)
    return _asks(connect, request, num_lines=1, is_ready=lambda line: line.split()[1:2] == [b"200"])


def redis_answers(port: int, password: str) -> Probe:
    """Ready when Redis has loaded its data and answers PING."""
    request = f"AUTH {password}\r\nPING\r\n".encode()
    connect = partial(asyncio.open_connection, "127.0.0.1", port)
    return _asks(connect, request, num_lines=2, is_ready=lambda lines: b"+PONG" in lines)


def port_accepts(host: str, port: int) -> Probe:
    """Ready when something accepts connections on a TCP port."""
    return _asks(partial(asyncio.open_connection, host, port))


def socket_accepts(path: Path) -> Probe:
    """Ready when something accepts connections on a unix socket."""
    return _asks(partial(asyncio.open_unix_connection, str(path)))


def _asks(
    connect: Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]],
    request: bytes = b"",
    *,
    num_lines: int = 0,
    is_ready: Callable[[bytes], bool] = lambda _: True,
) -> Probe:
    """Whether it takes a connection, and `num_lines` of its answer say that it is ready."""

    async def ask() -> bool:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                reader, writer = await connect()
                writer.write(request)
                answer = b"".join([await reader.readline() for _ in range(num_lines)])
                writer.close()
        except (OSError, TimeoutError):
            return False
        return is_ready(answer)

    return ask
