"""A desktop whose VNC server was replaced by a hostile one, at the web process's handshake."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from testing.rfb_messages import SERVER_INIT
from webapp.screens import relay_connection
from webapp.screens.relay_connection import NoScreen, open_link
from webapp.screens.rfb import desktop_handshake
from webapp.screens.rfb.desktop_handshake import greet_desktop
from webapp.screens.rfb.protocol import RfbError
from webapp.worker_door.human_control import read_ticket
from workers.env.takeover.vnc_relay import Relay

HELLO = b"RFB 003.008\n" + b"\x01\x01" + bytes(4)
SIDES, REST = SERVER_INIT[:4], SERVER_INIT[4:]
HUGE = b"\xff\xff\xff\xff"


async def greet(server: bytes) -> bytes:
    """The handshake with a server that says `server` whatever it hears."""
    reader = asyncio.StreamReader()
    reader.feed_data(server)
    reader.feed_eof()

    async def write(data: bytes) -> None:
        pass

    return await greet_desktop(reader.readexactly, write, name="Trajectory 1")


@pytest.mark.parametrize(
    ("server", "why"),
    [
        (b"HTTP/1.1 200", "speaks"),
        (b"RFB 003.003\n", "speaks"),
        (b"RFB 003.008\n\x01\x02", "asks for a password"),
        (b"RFB 003.008\n\x00", "asks for a password"),
        (b"RFB 003.008\n\x01\x01\x00\x00\x00\x01", "refused the connection"),
        (HELLO + HUGE + REST, "screen has 65535 x 65535 pixels"),
        (HELLO + bytes(4) + REST, "screen has 0 x 0 pixels"),
        (HELLO + SIDES + SERVER_INIT[4:20] + HUGE, "name has 4294967295 bytes"),
    ],
)
async def test_what_no_desktop_says_ends_the_handshake(server: bytes, why: str) -> None:
    with pytest.raises(RfbError, match=why):
        await greet(server)


async def test_a_screen_of_four_billion_pixels_reaches_the_browser_without_the_limit(monkeypatch) -> None:
    monkeypatch.setattr(desktop_handshake, "MAX_SIDE", 65_535)
    assert (await greet(HELLO + HUGE + REST)).startswith(HUGE)


async def test_the_browser_gets_our_name_of_the_desktop() -> None:
    name = b"<script>alert(1)</script>"
    greeting = await greet(HELLO + SERVER_INIT[:20] + len(name).to_bytes(4, "big") + name)
    assert greeting.endswith(b"Trajectory 1")


@pytest.fixture
def short_dir() -> Iterator[Path]:
    """A socket's path may be 107 bytes long."""
    with TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def relay(short_dir: Path) -> Iterator[Relay]:
    made = Relay(short_dir, read_ticket)
    yield made
    made.close()


@pytest.mark.parametrize("said", [b"", b"RFB 003.008\n", HELLO, HELLO + SERVER_INIT[:20]])
async def test_a_server_that_stops_in_the_middle_is_not_waited_for(
    relay, short_dir, monkeypatch, said
) -> None:
    monkeypatch.setattr(relay_connection, "OPEN_LIMIT_S", 0.3)
    heard_end = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        while await reader.read(4096):
            pass
        heard_end.set()
        writer.close()

    server = await asyncio.start_unix_server(talk, str(short_dir / "vnc"))
    with relay.offered(1, lambda: str(short_dir / "vnc")) as addresses:
        with pytest.raises(NoScreen, match="does not answer"):
            await open_link(1, addresses, name="x")
        async with asyncio.timeout(10):
            await heard_end.wait()
    server.close()
