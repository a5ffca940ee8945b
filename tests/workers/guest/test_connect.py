"""From a port of the evaluator's process to a program's own port in the machine, by the agent's CONNECT."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import requests

from testing.servers.answering import Answer, Request, answering
from workers.environments.osworld.child.agent_port_forward import Bridge
from workers.guest import http_server

LIMIT_S = 30.0


def say_status(request: Request) -> Answer:
    return Answer(f"status of {request.path}".encode(), headers={"Connection": "close"})


@contextmanager
def player() -> Iterator[int]:
    """The port of a program's own server, such as VLC's."""
    with answering(say_status) as url:
        yield int(url.rpartition(":")[2])


@contextmanager
def agent(*, connects: bool) -> Iterator[int]:
    """The agent's HTTP server without routes."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    handler = functools.partial(http_server.serve_connection, routes={}, connects=connects)
    started = asyncio.run_coroutine_threadsafe(asyncio.start_server(handler, "127.0.0.1", 0), loop)
    try:
        yield started.result(LIMIT_S).sockets[0].getsockname()[1]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(LIMIT_S)


def status(port: int) -> str:
    return requests.get(f"http://127.0.0.1:{port}/requests/status.xml", timeout=LIMIT_S).text


def test_a_programs_server_is_reached_through_the_agent(tmp_path):
    with player() as inner, agent(connects=True) as outer:
        (tmp_path / "desktop.address").write_text(f"127.0.0.1:{outer}")
        bridge = Bridge(str(tmp_path / "desktop.address"), inner)
        assert status(bridge.port) == "status of /requests/status.xml"
        assert status(bridge.port) == "status of /requests/status.xml", "once more, on a new connection"


def test_without_the_program_or_the_agents_leave_the_connection_ends(tmp_path):
    with player() as inner:
        gone = inner
    for connects, port in ((True, gone), (False, gone)):
        with agent(connects=connects) as outer:
            (tmp_path / "desktop.address").write_text(f"127.0.0.1:{outer}")
            with pytest.raises(requests.ConnectionError):
                status(Bridge(str(tmp_path / "desktop.address"), port).port)


def test_the_agent_connects_to_its_own_machine_only():
    with agent(connects=True) as outer:
        answer = asyncio.run(ask(outer, b"CONNECT 10.0.2.2:22 HTTP/1.1\r\n\r\n"))
        assert answer.startswith(b"HTTP/1.1 400 ")


async def ask(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    try:
        async with asyncio.timeout(LIMIT_S):
            return await reader.read()
    finally:
        writer.close()
