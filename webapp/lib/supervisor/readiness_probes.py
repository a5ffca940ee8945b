"""Questions that tell whether a process is ready; each is an async function without arguments."""

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

from webapp.lib.supervisor.supervised_process import Probe

TIMEOUT_S = 2.0


def http_ok(url: str) -> Probe:
    """Ready when a GET answers 200."""
    parts = urlsplit(url)
    request = f"GET {parts.path or '/'} HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()

    async def ask() -> bool:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
                writer.write(request)
                status_line = await reader.readline()
                writer.close()
        except (OSError, TimeoutError):
            return False
        return status_line.split()[1:2] == [b"200"]

    return ask


def redis_answers(port: int, password: str) -> Probe:
    """Ready when Redis has loaded its data and answers PING."""

    async def ask() -> bool:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(f"AUTH {password}\r\nPING\r\n".encode())
                answers = await reader.readline() + await reader.readline()
                writer.close()
        except (OSError, TimeoutError):
            return False
        return b"+PONG" in answers

    return ask


def port_accepts(host: str, port: int) -> Probe:
    """Ready when something accepts connections on a TCP port."""

    async def ask() -> bool:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                _, writer = await asyncio.open_connection(host, port)
                writer.close()
        except (OSError, TimeoutError):
            return False
        return True

    return ask


def socket_accepts(path: Path) -> Probe:
    """Ready when something accepts connections on a unix socket."""

    async def ask() -> bool:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                _, writer = await asyncio.open_unix_connection(str(path))
                writer.close()
        except (OSError, TimeoutError):
            return False
        return True

    return ask
