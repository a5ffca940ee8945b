"""The live socket through a real uvicorn and a real Redis, with publishers in another process."""

import json

import pytest
from asgiref.sync import sync_to_async
from websockets.asyncio.client import connect

from testing.factories import make_team, make_trajectory, make_user
from testing.live_client import publish_many, session_cookie

pytestmark = pytest.mark.django_db(transaction=True)


async def read(socket, number: int) -> list[int]:
    seqs: list[int] = []
    while len(seqs) < number:
        message = json.loads(await socket.recv())
        if "type" in message:
            seqs.append(message["seq"])
    return seqs


async def test_a_dropped_connection_catches_up_by_its_cursor(web_server):
    team = await sync_to_async(make_team)()
    viewer = await sync_to_async(make_user)("viewer", team=team)
    trajectory = await sync_to_async(make_trajectory)(team=team, turns=0)
    stream = f"trajectory.{trajectory.pk}"
    headers = {"Cookie": await sync_to_async(session_cookie)(viewer)}
    url = web_server.replace("http://", "ws://") + "/ws/live/"

    async with connect(url, additional_headers=headers, origin=web_server) as socket:
        await socket.send(json.dumps({"subscribe": stream, "after": 0}))
        assert json.loads(await socket.recv()) == {"subscribed": stream, "seq": 0}
        await publish_many(stream, range(3))
        seen = await read(socket, 3)
    await publish_many(stream, range(3, 6))
    async with connect(url, additional_headers=headers, origin=web_server) as socket:
        await socket.send(json.dumps({"subscribe": stream, "after": seen[-1]}))
        await publish_many(stream, range(6, 8))
        seen += await read(socket, 5)
    assert seen == list(range(1, 9))
