"""Every WebSocket against every role of the team that owns the row, a stranger, and anonymous.

These tests commit a world of their own. The matrix of pages keeps another in the database until its file
ends, so they stand apart from it.
"""

import pytest
from asgiref.sync import sync_to_async

from testing.live_client import communicator, open_socket, session_cookie, subscribe
from testing.web_world import make_world
from webapp.routing import websocket_urlpatterns

MEMBERS = ("owner", "operator", "annotator", "teammate")
SOCKETS = {"live-socket": "/ws/live/", "screen-socket": "/ws/screens/{trajectory}/"}


def test_every_websocket_route_is_tested():
    assert {route.name for route in websocket_urlpatterns} == set(SOCKETS)


@pytest.mark.django_db(transaction=True)
async def test_websocket_streams():
    made = await sync_to_async(make_world)()
    own = [f"experiment.{made.paths['experiment']}", f"trajectory.{made.paths['trajectory']}"]
    for person, may in {**dict.fromkeys(MEMBERS, True), "stranger": False}.items():
        socket = await open_socket(made.users[person])
        answers = [await subscribe(socket, stream, after=None) for stream in own]
        assert ["subscribed" in answer for answer in answers] == [may, may], person
        shared = [await subscribe(socket, stream, after=None) for stream in ("fleet", "queue")]
        assert all("subscribed" in answer for answer in shared)
        await socket.disconnect()
    nobody = communicator()
    await nobody.connect()
    assert (await nobody.receive_json_from())["error"]["code"] == "signed_out"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("person", "query", "code"),
    [
        ("owner", "", 4410),  # allowed, but the desktop of this old trajectory is gone
        ("teammate", "", 4410),
        ("teammate", "?control={control}", 4403),
        ("annotator", "?control={control}", 4403),
        ("operator", "?control={control}", 4410),
        ("stranger", "", 4404),
        ("stranger", "?control={control}", 4404),
        ("anonymous", "", 4401),
    ],
)
async def test_websocket_screens(person, query, code):
    made = await sync_to_async(make_world)()
    path = (SOCKETS["screen-socket"] + query).format(**made.paths)
    cookie = "" if person == "anonymous" else await sync_to_async(session_cookie)(made.users[person])
    socket = communicator(cookie, path=path)
    assert (await socket.connect())[0]
    assert (await socket.receive_output())["code"] == code


@pytest.mark.django_db
async def test_a_screen_refuses_pages_of_other_origins():
    socket = communicator(origin=b"http://elsewhere.example", path="/ws/screens/1/")
    connected, _ = await socket.connect()
    assert not connected
