"""Screens through a real uvicorn and a real relay, from a VNC server that says more than anybody reads."""

import asyncio
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from testing.factories import make_team, make_trajectory, make_user
from testing.live_client import session_cookie
from testing.rfb_messages import CLICK, HELLO, KEY, SERVER_INIT, UPDATE
from training.contracts.types import TrajectoryStatus
from webapp.accounts.models import AuditAction, AuditEntry, Membership
from webapp.screens.models import Control, ControlStatus
from webapp.screens.services import controls, screens
from webapp.trajectories.models import Trajectory
from webapp.trajectories.services.trajectories import end_trajectory
from webapp.worker_door.human_control import read_ticket
from workers.env.takeover.vnc_relay import Relay

pytestmark = pytest.mark.django_db(transaction=True)
CHUNK = os.urandom(1 << 16)  # nothing that could be compressed away
WAITING_BYTES = 24 << 20
"""More than all socket buffers on the way hold, less than a proxy that keeps everything would take."""
LIMIT_S = 60


class ChattyDesktop:
    """Speaks the handshake, then sends without end and remembers what it hears."""

    def __init__(self, path: Path, *, is_chatty: bool = True) -> None:
        self.path = path
        self.is_chatty = is_chatty
        self.num_sent = 0
        self.heard = bytearray()
        self.is_closed = asyncio.Event()

    async def __aenter__(self) -> "ChattyDesktop":
        self.server = await asyncio.start_unix_server(self.talk, str(self.path))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.server.close()

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"RFB 003.008\n")
        await reader.readexactly(12)
        writer.write(b"\x01\x01")
        await reader.readexactly(1)
        writer.write(bytes(4))
        await reader.readexactly(1)
        writer.write(SERVER_INIT)
        listening = asyncio.create_task(self.listen(reader))
        with contextlib.suppress(ConnectionError):
            while self.is_chatty and self.num_sent < 2 * WAITING_BYTES:
                writer.write(CHUNK)
                await writer.drain()
                self.num_sent += len(CHUNK)
        await listening
        writer.close()

    async def listen(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                self.heard += data
        self.is_closed.set()


@pytest.fixture
def relay() -> Iterator[Relay]:
    made = Relay(Path(settings.RUN_DIR), read_ticket)
    yield made
    made.close()


@sync_to_async
def make_running(addresses: list[str]) -> tuple[Trajectory, object, str]:
    """(running trajectory with a screen, operator, their cookie)"""
    team = make_team()
    operator = make_user("operator", team=team)
    trajectory = make_trajectory(team=team, turns=0, status="running", reward=None)
    screens.open_screen(trajectory_id=trajectory.pk, addresses=addresses)
    return trajectory, operator, session_cookie(operator)


async def open_screen(web_server: str, pk: int, cookie: str, query: str = "") -> ClientConnection:
    """Past the handshake."""
    url = f"{web_server.replace('http://', 'ws://')}/ws/screens/{pk}/{query}"
    socket = await connect(
        url,
        additional_headers={"Cookie": cookie},
        origin=web_server,
        open_timeout=LIMIT_S,
        ping_interval=None,
    )
    await socket.send(HELLO)
    greeting = b""
    while b"Trajectory" not in greeting:
        async with asyncio.timeout(LIMIT_S):
            greeting += await socket.recv()
    assert b"desk" not in greeting, "the VNC server's own name for the desktop came through"
    return socket


async def closing_code(socket: ClientConnection) -> int:
    async with asyncio.timeout(LIMIT_S):
        with contextlib.suppress(ConnectionClosed):
            while True:
                await socket.recv()
        await socket.wait_closed()
    return socket.close_code or 0


@pytest.fixture
def vnc_path() -> Iterator[Path]:
    path = Path(settings.RUN_DIR) / f"vnc-{os.getpid()}.sock"
    path.parent.mkdir(exist_ok=True)
    yield path
    path.unlink(missing_ok=True)


async def test_a_viewer_that_takes_nothing_holds_the_desktop_back_and_its_end_frees_it(
    web_server, relay, vnc_path
):
    trajectory, _, cookie = await make_running(relay.addresses)
    async with ChattyDesktop(vnc_path) as desktop:
        with relay.offered(trajectory.pk, lambda: str(vnc_path)):
            url = f"{web_server.replace('http://', 'ws://')}/ws/screens/{trajectory.pk}/"
            headers = {"Cookie": cookie}
            socket = await connect(url, additional_headers=headers, origin=web_server, ping_interval=None)
            await socket.send(HELLO)
            socket.transport.pause_reading()
            before = -1
            async with asyncio.timeout(LIMIT_S):
                while before != desktop.num_sent or not before:
                    before = desktop.num_sent
                    await asyncio.sleep(1)
            assert desktop.num_sent < WAITING_BYTES
            socket.transport.abort()
            async with asyncio.timeout(LIMIT_S):
                await desktop.is_closed.wait()


async def test_input_passes_while_control_is_held_and_not_a_moment_longer(web_server, relay, vnc_path):
    trajectory, operator, cookie = await make_running(relay.addresses)
    control = await sync_to_async(controls.request_control)(trajectory=trajectory, user=operator)
    async with ChattyDesktop(vnc_path, is_chatty=False) as desktop:
        with relay.offered(trajectory.pk, lambda: str(vnc_path)):
            socket = await open_screen(web_server, trajectory.pk, cookie, f"?control={control.pk}")
            await socket.send(CLICK + KEY + UPDATE)
            await heard(desktop, UPDATE)
            assert bytes(desktop.heard) == UPDATE, "input passed although the agent is not paused yet"

            await sync_to_async(controls.grant_control)(control.pk)
            await socket.send(CLICK + KEY + UPDATE)  # at once: nothing that a person does is lost
            await heard(desktop, UPDATE + CLICK + KEY + UPDATE)
            await sync_to_async(controls.hand_back_control)(control=control)
            assert await closing_code(socket) == 4411
            async with asyncio.timeout(LIMIT_S):
                await desktop.is_closed.wait()
    control = await sync_to_async(Control.objects.get)()
    actions = [row.action async for row in control.inputs.all()]
    assert control.status == ControlStatus.HANDED_BACK
    assert control.is_drained
    assert actions[0]["kind"] == "click"
    assert (actions[0]["x"], actions[0]["y"]) == (5, 6)
    watched = AuditEntry.objects.filter(action=AuditAction.WATCHED, kind="trajectory")
    seen = [(row.person_id, row.object_id, row.detail) async for row in watched]
    assert seen == [(operator.pk, str(trajectory.pk), {"how": "screen"})]


async def heard(desktop: ChattyDesktop, ending: bytes) -> None:
    async with asyncio.timeout(LIMIT_S):
        while not desktop.heard.endswith(ending):
            await asyncio.sleep(0.02)


async def test_a_second_tab_of_the_same_person_takes_the_control_from_the_first(web_server, relay, vnc_path):
    trajectory, operator, cookie = await make_running(relay.addresses)
    control = await sync_to_async(controls.request_control)(trajectory=trajectory, user=operator)
    async with ChattyDesktop(vnc_path, is_chatty=False):
        with relay.offered(trajectory.pk, lambda: str(vnc_path)):
            first = await open_screen(web_server, trajectory.pk, cookie, f"?control={control.pk}")
            second = await open_screen(web_server, trajectory.pk, cookie, f"?control={control.pk}")
            assert await closing_code(first) == 4409
            await second.close()


async def test_a_screen_closes_when_the_trajectory_ends_or_the_right_to_it(web_server, relay, vnc_path):
    trajectory, operator, cookie = await make_running(relay.addresses)
    async with ChattyDesktop(vnc_path, is_chatty=False):
        with relay.offered(trajectory.pk, lambda: str(vnc_path)):
            watching = await open_screen(web_server, trajectory.pk, cookie)
            await sync_to_async(Membership.objects.filter(user=operator).delete)()
            assert await closing_code(watching) == 4403
            await sync_to_async(Membership.objects.create)(
                user=operator, team_id=trajectory.team_id, role="viewer"
            )
            watching = await open_screen(web_server, trajectory.pk, cookie)
            await sync_to_async(end_trajectory)(
                trajectory_id=trajectory.pk, status=TrajectoryStatus.CANCELLED
            )
            assert await closing_code(watching) == 4410
