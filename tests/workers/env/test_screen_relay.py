"""The env worker's relay between the web process and a real desktop's VNC server."""

import asyncio
import contextlib
import os
import socket
import stat

import pytest

from webapp.screens.relay_connection import NoScreen, open_link
from webapp.screens.relay_tickets import make_ticket
from webapp.screens.rfb.protocol import PointerEvent, pointer_bytes
from webapp.worker_door.human_control import read_ticket
from workers.desktops.leased_desktop import DesktopEnv
from workers.desktops.x11.display_connection import X11Display
from workers.env.takeover.vnc_relay import Relay
from workers.processes.unix_socket import connect_unix

pytestmark = pytest.mark.desktop
TRAJECTORY = 31


@pytest.fixture
def relay(short_dir):
    made = Relay(short_dir, read_ticket, "127.0.0.1")
    yield made
    made.close()


@pytest.fixture
def vnc_socket(desktop: DesktopEnv) -> str:
    return desktop.lease.desktop.endpoints.vnc


def pointer_of(desktop: DesktopEnv) -> tuple[int, int]:
    """Where the desktop's own display server has its pointer."""
    display = X11Display(desktop.lease.desktop.endpoints.display)
    try:
        at = display.root.query_pointer()
        return at.root_x, at.root_y
    finally:
        display.close()


async def ask(address: str, line: bytes) -> bytes:
    """What the relay answers to a first line."""
    reader, writer = await asyncio.open_unix_connection(address.removeprefix("unix:"))
    writer.write(line)
    answer = await reader.read(100)
    writer.close()
    return answer


async def test_a_ticket_opens_the_desktop_by_unix_socket_and_by_tcp(relay, vnc_socket):
    with relay.offered(TRAJECTORY, lambda: vnc_socket) as addresses:
        assert [address.split(":")[0] for address in addresses] == ["unix", "tcp"]
        for address in addresses:
            link = await open_link(TRAJECTORY, [address], name="Trajectory 31")
            width, height = link.server_init[:2], link.server_init[2:4]
            assert (int.from_bytes(width, "big"), int.from_bytes(height, "big")) == (512, 384)
            assert link.server_init.endswith(b"Trajectory 31")
            link.close()


async def test_the_web_tries_the_next_address_when_one_is_on_another_machine(relay, vnc_socket):
    with relay.offered(TRAJECTORY, lambda: vnc_socket) as addresses:
        link = await open_link(TRAJECTORY, ["unix:/no/such/socket", addresses[1]], name="x")
        link.close()


async def test_without_a_valid_ticket_nothing_is_opened(relay, vnc_socket):
    with relay.offered(TRAJECTORY, lambda: vnc_socket) as (address, _):
        for line in (b"\n", b"x" * 2000 + b"\n", make_ticket(TRAJECTORY + 1).encode() + b"\n", b"\xff\x00\n"):
            assert (await ask(address, line)).startswith(b"no t")
        assert b"the ticket is not valid here" in await ask(address, b"\n")


async def test_who_is_refused_hears_why(relay, vnc_socket):
    with relay.offered(TRAJECTORY, lambda: vnc_socket) as addresses:
        for address in addresses:
            with pytest.raises(NoScreen, match="^the host refused: the desktop is being prepared$"):
                await open_link(TRAJECTORY + 1, [address], name="x")
    with relay.offered(TRAJECTORY, lambda: f"{vnc_socket}-of-one-that-is-gone") as addresses:
        for address in addresses:
            with pytest.raises(NoScreen, match="^the host refused: the desktop's screen does not answer$"):
                await open_link(TRAJECTORY, [address], name="x")
    with pytest.raises(NoScreen, match="does not answer"):
        await open_link(TRAJECTORY, ["unix:/no/such/socket"], name="x")


def test_nobody_else_may_open_its_socket(relay):
    path = relay.addresses[0].removeprefix("unix:")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


@pytest.mark.parametrize("kind", ["unix", "tcp"])
async def test_the_end_of_the_offer_cuts_open_connections(relay, vnc_socket, desktop, kind):
    """Whoever watched must not see or touch what the desktop does next."""
    with relay.offered(TRAJECTORY, lambda: vnc_socket) as addresses:
        (address,) = [address for address in addresses if address.startswith(kind)]
        link = await open_link(TRAJECTORY, [address], name="x")
        await link.write(pointer_bytes(PointerEvent(0, 100, 120)))
        async with asyncio.timeout(60):
            while pointer_of(desktop) != (100, 120):
                await asyncio.sleep(0.02)
    async with asyncio.timeout(60):
        assert await link.read() == b""
    with contextlib.suppress(NoScreen):
        await link.write(pointer_bytes(PointerEvent(0, 7, 7)))
    await asyncio.sleep(0.2)
    assert pointer_of(desktop) == (100, 120)


async def test_the_death_of_the_worker_ends_the_connection_that_it_passed_on(short_dir, vnc_socket):
    """Nobody would be left to cut it when the desktop goes to the next trajectory."""
    path = short_dir / "relay.sock"
    relays: list[socket.socket] = []

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert (await reader.readline()).startswith(b"pass ")
        connection = socket.socket(fileno=os.dup(writer.get_extra_info("socket").fileno()))
        with connect_unix(vnc_socket) as desktop:
            socket.send_fds(connection, [b"ok\n"], [desktop.fileno()])
        relays.append(connection)

    async with await asyncio.start_unix_server(pass_on, str(path)):
        link = await open_link(TRAJECTORY, [f"unix:{path}"], name="x")
        reading = asyncio.create_task(link.read())
        await asyncio.sleep(0.1)
        assert not reading.done()
        relays[0].shutdown(socket.SHUT_RDWR)
        async with asyncio.timeout(60):
            assert await reading == b""
        with pytest.raises(NoScreen):
            await link.write(pointer_bytes(PointerEvent(0, 7, 7)))
        link.close()


async def test_a_desktop_without_vnc_is_no_screen(relay):
    with relay.offered(TRAJECTORY, lambda: "") as addresses, pytest.raises(NoScreen):
        await open_link(TRAJECTORY, addresses, name="x")
