"""Viewers that mean no good: one that takes nothing, and one that sends nonsense."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from websockets.exceptions import ConnectionClosed

from benchmarks.vnc.rfb_client import RfbViewer
from benchmarks.vnc.rounds import memory_mb, until_seen
from benchmarks.vnc.stage import LIMIT_S, SCREEN, Stage

SLOW_S = 8.0
SLOW_REQUESTS = 60
BURST, BURSTS = 100, 20
BAD_PROTOCOL = 4400
NO_MESSAGES = (1, 7, 8, 42, 99, 200, 248, 249, 252)
"""Kinds that no client message has."""


async def slow_viewer(stage: Stage) -> float:
    """How much the proxy grows for a viewer that asks for everything and takes nothing, MB."""
    reader, writer = await raw_websocket(stage)
    before = memory_mb([stage.web, stage.worker])
    request = bytes([3, 0, 0, 0, 0, 0]) + SCREEN[0].to_bytes(2, "big") + SCREEN[1].to_bytes(2, "big")
    largest = before
    for _ in range(SLOW_REQUESTS):
        writer.write(masked(request))
        await asyncio.sleep(SLOW_S / SLOW_REQUESTS)
        largest = max(largest, memory_mb([stage.web, stage.worker]))
    async with asyncio.timeout(LIMIT_S):
        waiting = await reader.read(1 << 16)
    assert len(waiting) > 1000, "the proxy sent nothing: there was nothing to hold back"
    writer.transport.abort()
    return round(largest - before, 1)


async def raw_websocket(stage: Stage) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A WebSocket without a library, past the RFB handshake: nothing reads it but who calls."""
    host, _, port = stage.deskhand.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 12)
    lines = [
        f"GET /ws/screens/{stage.trajectory_id}/ HTTP/1.1",
        f"Host: {host}:{port}",
        f"Origin: {stage.deskhand.url}",
        f"Cookie: {stage.cookie}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    ]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
    status = await reader.readline()
    assert b" 101 " in status, status
    while (await reader.readline()).strip():
        pass
    writer.write(masked(b"RFB 003.008\n\x01\x01"))
    await asyncio.sleep(1)
    return reader, writer


def masked(payload: bytes) -> bytes:
    """A short binary WebSocket message of a client, with a mask of zeros."""
    assert len(payload) < 126
    return bytes([0x82, 0x80 | len(payload)]) + bytes(4) + payload


async def fuzz(stage: Stage, num_messages: int) -> dict[str, Any]:
    """Input, nonsense and broken messages from somebody who only watches; then look at everything.

    Each connection ends with bytes that are no message, so that the proxy closes it after having read all.
    """
    dice = random.Random(11)
    before, web_pid = await stage.painter.still(), stage.web.pid
    sent = num_refused = connections = 0
    while sent < num_messages:
        viewer = await stage.viewer()
        connections += 1
        for _ in range(BURSTS):
            await viewer.socket.send(b"".join(fuzzed_message(dice) for _ in range(BURST)))
            sent += BURST
        await viewer.socket.send(bytes([dice.choice(NO_MESSAGES)]) + dice.randbytes(40))
        num_refused += await close_code(viewer) == BAD_PROTOCOL
    after = await stage.painter.still()
    last = await stage.viewer()
    colour, _ = stage.painter.change()
    await last.ask(incremental=False)
    await until_seen(last, colour)
    await last.close()
    return {
        "messages": sent,
        "connections": connections,
        "refused": num_refused,
        "desktop_unchanged": before == after,
        "web_alive": stage.web.is_running() and stage.web.pid == web_pid,
    }


async def close_code(viewer: RfbViewer) -> int:
    """Take everything until the proxy closes the connection."""
    try:
        async with asyncio.timeout(LIMIT_S):
            while True:
                await viewer.socket.recv()
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd else 0


def fuzzed_message(dice: random.Random) -> bytes:
    """A whole message of some kind with random content."""
    lengths = {3: 10, 4: 8, 5: 6, 150: 10, 250: 4, 255: 12}
    kind = dice.choice((3, 4, 4, 5, 5, 5, 6, 2, 150, 250, 251, 255))
    if kind == 2:
        number = dice.randrange(8)
        return bytes([2, 0, 0, number]) + dice.randbytes(4 * number)
    if kind == 6:
        return bytes([6, 0, 0, 0, 0, 0, 0, 9]) + dice.randbytes(9)
    if kind == 251:
        return bytes([251, 0, 2, 0, 2, 0, 1, 0]) + dice.randbytes(16)
    if kind == 255:
        return bytes([255, 0]) + dice.randbytes(10)
    return bytes([kind]) + dice.randbytes(lengths[kind] - 1)
