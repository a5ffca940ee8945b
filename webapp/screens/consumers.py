"""`/ws/screens/ID/`: a browser's noVNC connection to the live desktop of a trajectory.

    browser <- WebSocket -> ClientSide (filter) <-> Link -> relay of the env worker -> VNC server
`?control=ID` lets input pass while that control is held through this connection; without it the filter drops
every input message. Updates travel only when the browser asks for one, and the desktop is read only when
the browser has taken what came before, so a slow browser costs one chunk of memory.
Close codes: 4400 protocol, 4401 signed out, 4403 no right, 4404 unknown, 4409 another tab has control,
4410 the desktop is gone, 4411 control is over, 4508 the browser is too slow.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs

from channels.generic.websocket import AsyncWebsocketConsumer

from webapp.accounts.models import Role
from webapp.live.broadcast import group_name
from webapp.live.consumers import in_database
from webapp.screens import queries, services
from webapp.screens.link import Link, NoScreen, open_link
from webapp.screens.models import ControlStatus
from webapp.screens.rfb.client_side import ClientSide
from webapp.screens.rfb.gestures import Gesture, GestureReader
from webapp.screens.rfb.protocol import RfbError
from webapp.trajectories.services import stream_of

logger = logging.getLogger(__name__)

BAD_PROTOCOL, SIGNED_OUT, NOT_ALLOWED, UNKNOWN = 4400, 4401, 4403, 4404
OTHER_TAB, GONE, CONTROL_OVER, TOO_SLOW = 4409, 4410, 4411, 4508
CHECK_S = 2.0
"""How long a change that the channel layer lost can stay unseen."""
CHECKS_PER_RENEWAL = 2
CHECKS_PER_RIGHTS = 2
GESTURE_TICK_S = 0.2
MAX_UNWRITTEN = 2000
"""Gestures that wait for the database; no hand makes more."""
SEND_LIMIT_S = 20.0
"""A browser that takes nothing for this long is let go."""


class ScreenConsumer(AsyncWebsocketConsumer):
    """One browser at one desktop."""

    async def connect(self) -> None:
        self.link: Link | None = None
        self.side: ClientSide | None = None
        self.tasks: list[asyncio.Task[None]] = []
        self.news = asyncio.Event()
        self.trajectory_id = int(self.scope["url_route"]["kwargs"]["pk"])
        self.connection = secrets.token_hex(16)
        self.control_id = self._asked_control()
        offered = self.scope.get("subprotocols") or []
        await self.accept(subprotocol="binary" if "binary" in offered else None)
        code = await self._admit()
        if code:
            await self.close(code)
            return
        self.tasks = [asyncio.create_task(self._pump()), asyncio.create_task(self._watch())]
        if self.control_id is not None:
            self.scribe = asyncio.create_task(self._keep_gestures())

    def _asked_control(self) -> int | None:
        values = parse_qs(self.scope.get("query_string", b"").decode("ascii", errors="replace")).get(
            "control"
        )
        return int(values[0]) if values and values[0].isascii() and values[0].isdigit() else None

    async def _admit(self) -> int:
        """Check rights and reach the desktop; 0, or the close code."""
        user = self.scope["user"]
        if not user.is_authenticated:
            return SIGNED_OUT
        role = await in_database(queries.role_for, user, self.trajectory_id)
        if role is None:
            return UNKNOWN
        if self.control_id is not None and not role.includes(Role.OPERATOR):
            return NOT_ALLOWED
        await self.channel_layer.group_add(group_name(stream_of(self.trajectory_id)), self.channel_name)
        standing = await in_database(queries.standing_of, self.trajectory_id)
        if standing is None or not standing.is_watchable:
            return GONE
        if self.control_id is not None and not await self._attach():
            return CONTROL_OVER
        try:
            name = f"Trajectory {self.trajectory_id}"
            self.link = await open_link(self.trajectory_id, standing.addresses, name=name)
        except NoScreen as error:
            logger.info("screen of trajectory %s: %s", self.trajectory_id, error)
            return GONE
        self.side = ClientSide(self.link.server_init, wants_control=self.control_id is not None)
        await self.send(bytes_data=self.side.greeting())
        return 0

    async def _attach(self) -> bool:
        control = await in_database(self._attach_in_database)
        if control is None or control.trajectory_id != self.trajectory_id:
            return False
        first = await in_database(lambda: control.inputs.count())
        self.gestures = GestureReader(next_index=first)
        self.unwritten: asyncio.Queue[list[Gesture] | None] = asyncio.Queue()
        return True

    def _attach_in_database(self) -> Any:
        return services.attach_connection(
            control_id=self.control_id or 0, user_id=self.scope["user"].pk, connection=self.connection
        )

    # -- from the browser ---------------------------------------------------------------------

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if self.link is None or self.side is None:
            return
        if bytes_data is None:
            await self.close(BAD_PROTOCOL)
            return
        try:
            heard = self.side.hear(bytes_data)
        except RfbError as error:
            logger.info("screen of trajectory %s: %s", self.trajectory_id, error)
            await self._end(BAD_PROTOCOL)
            return
        if heard.reply:
            await self.send(bytes_data=bytes(heard.reply))
        if heard.inputs:
            now = time.time()
            for event in heard.inputs:
                self._note(self.gestures.read(event, now))
            if self.unwritten.qsize() > MAX_UNWRITTEN:
                await self._end(BAD_PROTOCOL)
                return
        if heard.forward:
            try:
                await self.link.write(bytes(heard.forward))
            except NoScreen:
                await self._end(GONE)

    async def live_event(self, message: dict[str, Any]) -> None:
        """From the channel layer: something about this trajectory changed."""
        if message["event_type"].startswith(("control.", "screen.", "trajectory.")):
            self.news.set()

    # -- to the browser -----------------------------------------------------------------------

    async def _pump(self) -> None:
        """What the desktop says, one chunk at a time."""
        assert self.link is not None
        while data := await self.link.read():
            try:
                async with asyncio.timeout(SEND_LIMIT_S):
                    await self.send(bytes_data=data)
            except TimeoutError:
                await self._end(TOO_SLOW)
                return
            except OSError:
                return  # the tab was closed; `disconnect` is on its way
        await self._end(GONE)

    # -- rights and control over time ---------------------------------------------------------

    async def _watch(self) -> None:
        """Look whether everything still holds: at every event, and every CHECK_S."""
        num_checks = 0
        while True:
            code = await self._check(num_checks)
            if code:
                await self._end(code)
                return
            num_checks += 1
            with suppress(TimeoutError):
                await asyncio.wait_for(self.news.wait(), CHECK_S)
            self.news.clear()

    async def _check(self, num_checks: int) -> int:
        """0 while the connection may go on, else its close code. Opens and shuts the way for input."""
        if num_checks % CHECKS_PER_RIGHTS == 0:
            role = await in_database(queries.role_for, self.scope["user"], self.trajectory_id)
            if role is None or (self.control_id is not None and not role.includes(Role.OPERATOR)):
                return NOT_ALLOWED
        standing = await in_database(queries.standing_of, self.trajectory_id)
        if standing is None or not standing.is_watchable:
            return GONE
        if self.control_id is None or self.side is None:
            return 0
        if standing.control_id != self.control_id:
            return CONTROL_OVER
        if standing.connection != self.connection:
            return OTHER_TAB
        self.side.may_act = standing.control_status == ControlStatus.HELD
        if num_checks % CHECKS_PER_RENEWAL == 0:
            await in_database(self._renew)
        return 0

    def _renew(self) -> bool:
        return services.renew_control(control_id=self.control_id or 0, user_id=self.scope["user"].pk)

    # -- what the person did ------------------------------------------------------------------

    def _note(self, gestures: list[Gesture]) -> None:
        if gestures:
            self.unwritten.put_nowait(gestures)

    async def _keep_gestures(self) -> None:
        """Write gestures down in order, beside the input so that it is never delayed; ends at a None."""
        while True:
            self._note(self.gestures.tick(time.time()))
            try:
                gestures = await asyncio.wait_for(self.unwritten.get(), GESTURE_TICK_S)
            except TimeoutError:
                continue
            if gestures is None:
                return
            await in_database(self._write, gestures)

    def _write(self, gestures: list[Gesture]) -> None:
        services.record_gestures(control_id=self.control_id or 0, gestures=gestures)

    async def _drain(self) -> None:
        """After the last input: let go of what is held, write down what is not written."""
        assert self.side is not None
        self.side.may_act = False
        if self.link is not None and (released := self.side.release_all()):
            with suppress(NoScreen):
                await self.link.write(released)
        self._note(self.gestures.finish(time.time()))
        self.unwritten.put_nowait(None)
        await self.scribe
        await in_database(self._mark_drained)

    def _mark_drained(self) -> None:
        services.mark_drained(control_id=self.control_id or 0, connection=self.connection)

    # -- the end ------------------------------------------------------------------------------

    async def _end(self, code: int) -> None:
        """Close both sides; called from one of our own tasks or from `receive`."""
        await self._stop(but=asyncio.current_task())
        with suppress(TimeoutError, OSError):
            await asyncio.wait_for(self.close(code), SEND_LIMIT_S)

    async def disconnect(self, code: int) -> None:
        """The tab was closed, or we closed."""
        await self._stop()
        await self.channel_layer.group_discard(group_name(stream_of(self.trajectory_id)), self.channel_name)

    async def _stop(self, but: asyncio.Task[Any] | None = None) -> None:
        tasks, self.tasks = [task for task in self.tasks if task is not but], []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        link = self.link
        if link is not None and self.control_id is not None:
            await self._drain()
        self.link = None
        if link is not None:
            link.close()
