"""`/ws/screens/ID/`: a browser's noVNC connection to the live desktop of a trajectory.

    browser <- WebSocket -> BrowserFilter (filter) <-> Link -> VNC server, opened by the env worker's relay
`?control=ID` lets input pass while that control is held through this connection; without it the filter drops
every input message. Updates travel only when the browser asks for one, and the desktop is read only when
the browser has taken what came before, so a slow browser costs one chunk of memory.

This is a plain ASGI application, not a Channels consumer: one of those starts a task and asks a thread to
look after database connections for each message, several times the cost of moving a picture.

Close codes: 4400 protocol, 4401 signed out, 4403 no right, 4404 unknown, 4409 another tab has control,
4410 the desktop is gone, 4411 control is over, 4508 the browser is too slow.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs

from webapp.accounts.models import Role
from webapp.lib.request_values import row_id
from webapp.live.consumers import in_database
from webapp.screens.input_recorder import InputRecorder
from webapp.screens.models import ControlStatus
from webapp.screens.queries import screens
from webapp.screens.relay_connection import Link, NoScreen, open_link
from webapp.screens.rfb.browser_filter import BrowserFilter
from webapp.screens.rfb.protocol import ClientMessage, RfbError
from webapp.screens.screen_change_notices import ScreenChanges
from webapp.screens.services import controls
from webapp.screens.services.screens import log_watching

logger = logging.getLogger(__name__)

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

BROWSER_GONE = 0
UNKNOWN_CONTROL = 0
"""No row has this id: a page that asks for control by no number gets none."""
BAD_PROTOCOL, SIGNED_OUT, NOT_ALLOWED, UNKNOWN = 4400, 4401, 4403, 4404
OTHER_TAB, GONE, CONTROL_OVER, TOO_SLOW = 4409, 4410, 4411, 4508
INPUTS = (bytes([ClientMessage.KEY]), bytes([ClientMessage.POINTER]))
"""How a message that acts on the desktop begins."""
CHECK_S = 2.0
"""How long a change that the channel layer lost can stay unseen."""
CHECKS_PER_THOROUGH = 2
"""Rights are read again, and control renewed, after this number of checks."""
MAX_WHY_BYTES = 123
"""The most that a WebSocket's close may say."""
SEND_LIMIT_S = 20.0
"""A browser that takes nothing for this long is let go."""


async def screen_socket(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """The ASGI application: one browser at one desktop."""
    await ScreenSocket(scope, receive, send).serve()


class ScreenSocket:
    """One browser at one desktop, from its first message to its last."""

    def __init__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        self.scope, self.receive, self.send = scope, receive, send
        self.user = scope["user"]
        self.trajectory_id: int = scope["url_route"]["kwargs"]["pk"]
        self.control_id = _asked_control(scope)
        self.connection = secrets.token_hex(16)
        self.news = ScreenChanges(self.trajectory_id)
        self.scribe: InputRecorder | None = None
        self.link: Link
        self.side: BrowserFilter
        self._checking = asyncio.Lock()
        self._sending_since: float | None = None
        self._why = ""
        """Why the desktop cannot be reached, for the page."""

    async def serve(self) -> None:
        await self.receive()  # websocket.connect
        offered = self.scope.get("subprotocols") or []
        subprotocol = "binary" if "binary" in offered else None
        await self.send({"type": "websocket.accept", "subprotocol": subprotocol})
        try:
            code = await self._admit() or await self._both_ways()
        except OSError:  # from `send`: the tab was closed
            code = BROWSER_GONE
        finally:
            await self.news.close()
        if code != BROWSER_GONE:
            with suppress(TimeoutError, OSError):
                async with asyncio.timeout(SEND_LIMIT_S):
                    await self.send({"type": "websocket.close", "code": code, "reason": self._why})

    # -- before anything passes ---------------------------------------------------------------

    async def _admit(self) -> int:
        """Check the rights; 0, or the close code."""
        if not self.user.is_authenticated:
            return SIGNED_OUT
        role = await in_database(screens.role_for, self.user, self.trajectory_id)
        if role is None:
            return UNKNOWN
        if self.control_id is not None and not role.includes(Role.OPERATOR):
            return NOT_ALLOWED
        await self.news.open()
        return 0

    async def _both_ways(self) -> int:
        """Reach the desktop and serve it until something ends; the close code."""
        standing = await in_database(screens.state_of_screen, self.trajectory_id)
        if standing is None or not standing.is_watchable:
            return GONE
        num_written = await in_database(self._attach) if self.control_id is not None else 0
        if num_written is None:
            return CONTROL_OVER
        try:
            name = f"Trajectory {self.trajectory_id}"
            self.link = await open_link(self.trajectory_id, standing.addresses, name=name)
        except NoScreen as error:
            logger.info("screen of trajectory %s: %s", self.trajectory_id, error)
            self._why = str(error).encode()[:MAX_WHY_BYTES].decode(errors="ignore")
            return GONE
        self.side = BrowserFilter(self.link.server_init, wants_control=self.control_id is not None)
        await in_database(log_watching, self.user, self.trajectory_id)
        if self.control_id is not None:
            self.scribe = InputRecorder(self.control_id, num_written)
        try:
            await self._reply(self.side.greeting())
            return await self._until_one_ends()
        finally:
            await self._let_go()

    def _attach(self) -> int | None:
        """How many inputs this control has; None when it is over, or of another trajectory."""
        control = controls.attach_connection(
            control_id=self.control_id or 0, user_id=self.user.pk, connection=self.connection
        )
        if control is None or control.trajectory_id != self.trajectory_id:
            return None
        return control.inputs.count()

    async def _until_one_ends(self) -> int:
        """From the browser, to the browser, and whether it may go on; the close code of what ended first."""
        parts = [asyncio.create_task(part) for part in (self._hear(), self._pump(), self._watch())]
        ends = [*parts, self.scribe.task] if self.scribe else parts
        try:
            done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            return max(end.result() or 0 for end in done)
        finally:
            for part in parts:
                part.cancel()
            await asyncio.gather(*parts, return_exceptions=True)

    async def _let_go(self) -> None:
        """Release what the person holds down, close the desktop's side, write down what is not written."""
        self.side.may_act = False
        if released := self.side.release_all():
            with suppress(NoScreen):
                await self.link.write(released)
        self.link.close()
        if self.scribe is not None:
            await self.scribe.finish()
            await in_database(self._mark_drained)

    def _mark_drained(self) -> None:
        controls.mark_drained(control_id=self.control_id or 0, connection=self.connection)

    # -- from the browser ---------------------------------------------------------------------

    async def _hear(self) -> int:
        """What the browser says, message by message."""
        while True:
            message = await self.receive()
            if message["type"] == "websocket.disconnect":
                return BROWSER_GONE
            data = message.get("bytes")
            if data is None:
                return BAD_PROTOCOL
            if self.control_id is not None and not self.side.may_act and data[:1] in INPUTS:
                await self._check_and_open(is_thorough=False)  # the page knew before us that control is held
            try:
                heard = self.side.hear(data)
                if heard.reply:
                    await self._reply(bytes(heard.reply))
                if heard.inputs and self.scribe and not self.scribe.note(heard.inputs):
                    return BAD_PROTOCOL
                if heard.forward:
                    await self.link.write(bytes(heard.forward))
            except RfbError as error:
                logger.info("screen of trajectory %s: %s", self.trajectory_id, error)
                return BAD_PROTOCOL
            except NoScreen:
                return GONE

    async def _reply(self, data: bytes) -> None:
        """Of the handshake: short."""
        await self.send({"type": "websocket.send", "bytes": data})

    # -- to the browser -----------------------------------------------------------------------

    async def _pump(self) -> int:
        """What the desktop says, one chunk at a time. How long a chunk waits is for `_watch` to see."""
        while data := await self.link.read():
            self._sending_since = time.monotonic()
            await self.send({"type": "websocket.send", "bytes": data})
            self._sending_since = None
        return GONE

    # -- rights and control over time ---------------------------------------------------------

    async def _watch(self) -> int:
        """Look whether everything still holds: at every event, and every CHECK_S. Opens and shuts input."""
        num_checks = 0
        while True:
            if code := await self._check_and_open(is_thorough=num_checks % CHECKS_PER_THOROUGH == 0):
                return code
            since = self._sending_since
            if since is not None and time.monotonic() - since > SEND_LIMIT_S:
                return TOO_SLOW
            num_checks += 1
            await self.news.wait(CHECK_S)

    async def _check_and_open(self, *, is_thorough: bool) -> int:
        """Open or shut input as the database says now, one at a time; the close code, or 0."""
        async with self._checking:
            code, self.side.may_act = await in_database(self._check, is_thorough)
        return code

    def _check(self, is_thorough: bool) -> tuple[int, bool]:
        """(0 while the connection may go on, else its close code; whether input may pass)"""
        if is_thorough:
            role = screens.role_for(self.user, self.trajectory_id)
            if role is None or (self.control_id is not None and not role.includes(Role.OPERATOR)):
                return NOT_ALLOWED, False
        standing = screens.state_of_screen(self.trajectory_id)
        if standing is None or not standing.is_watchable:
            return GONE, False
        if self.control_id is None:
            return 0, False
        if standing.control_id != self.control_id:
            return CONTROL_OVER, False
        if standing.connection != self.connection:
            return OTHER_TAB, False
        if is_thorough:
            controls.renew_control(control_id=self.control_id, user_id=self.user.pk)
        return 0, standing.control_status == ControlStatus.HELD


def _asked_control(scope: dict[str, Any]) -> int | None:
    """The number in `?control=`; None for a viewer."""
    query = scope.get("query_string", b"").decode("ascii", errors="replace")
    values = parse_qs(query).get("control")
    return row_id(values[0]) or UNKNOWN_CONTROL if values else None
