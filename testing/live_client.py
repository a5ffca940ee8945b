"""A browser's side of `/ws/live/` in tests: session cookie, Origin, and what it has received."""

from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from webapp.asgi import application
from webapp.live.event_publishing import publish

ORIGIN = b"http://localhost"
LIMIT_S = 60
"""Of one answer; Channels' own limit of a second is too short for a busy machine."""


class PatientCommunicator(WebsocketCommunicator):
    """Channels' test client with limits that only a fault reaches."""

    async def connect(self, timeout: float = LIMIT_S) -> tuple[bool, object]:
        return await super().connect(timeout)

    async def receive_output(self, timeout: float = LIMIT_S) -> dict:
        return await super().receive_output(timeout)

    async def receive_from(self, timeout: float = LIMIT_S) -> str | bytes:
        return await super().receive_from(timeout)

    async def receive_json_from(self, timeout: float = LIMIT_S) -> dict:
        return await super().receive_json_from(timeout)

    async def disconnect(self, code: int = 1000, timeout: float = LIMIT_S) -> None:
        await super().disconnect(code, timeout)
        assert not self.future.cancelled(), f"the server's side did not end within {timeout:g} s"


def session_cookie(user: User) -> str:
    client = Client()
    client.force_login(user)
    return f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"


def communicator(cookie: str = "", origin: bytes = ORIGIN, path: str = "/ws/live/") -> WebsocketCommunicator:
    headers = [(b"origin", origin), (b"host", b"localhost")]
    if cookie:
        headers.append((b"cookie", cookie.encode()))
    return PatientCommunicator(application, path, headers)


async def open_socket(user: User) -> WebsocketCommunicator:
    socket = communicator(await sync_to_async(session_cookie)(user))
    connected, _ = await socket.connect()
    assert connected
    return socket


async def subscribe(socket: WebsocketCommunicator, stream: str, after: int | None = 0) -> dict:
    """Send the subscription and return the answer."""
    await socket.send_json_to({"subscribe": stream} | ({} if after is None else {"after": after}))
    return await socket.receive_json_from()


async def receive_events(socket: WebsocketCommunicator, number: int) -> list[dict]:
    """The next `number` events, pings left out."""
    events: list[dict] = []
    while len(events) < number:
        message = await socket.receive_json_from()
        if "type" in message:
            events.append(message)
    return events


@sync_to_async(thread_sensitive=False)
def publish_many(stream: str, indexes: range, event_type: str = "turn.added") -> None:
    """From a worker's thread, each in its own transaction."""
    from django.db import connection

    for index in indexes:
        publish(stream, event_type, {"index": index})
    connection.close()
