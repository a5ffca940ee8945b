"""Screens that reach a viewer before their turn is recorded: only those who asked get them."""

import asyncio
import json

import pytest
from asgiref.sync import sync_to_async
from PIL import Image

from testing.factories import make_team, make_trajectory, make_user
from testing.live_client import open_socket, publish_many, receive_events, subscribe
from webapp.accounts.models import AuditEntry, Role
from webapp.live import broadcast
from webapp.live.broadcast import is_watched
from webapp.live.consumers import LiveConsumer
from webapp.live.subscription_backlog import Feed
from webapp.trajectories.live_pictures import SMALL_WIDTH, show_screen
from webapp.trajectories.services.announcements import stream_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def watcher(transactional_db):
    team = make_team()
    return make_user(Role.VIEWER, team=team), make_trajectory(team=team, status="running", reward=None).pk


def show(trajectory_id: int, index: int, width: int = 64) -> None:
    image = Image.new("RGB", (width, 48), (index, 0, 0))
    show_screen(
        trajectory_id=trajectory_id,
        index=index,
        sha256=f"{index:064x}",
        png=b"PNG\n\n" + bytes([index]),
        image=image,
        observed_at=1.5,
    )


async def watch(socket, stream: str) -> None:
    await socket.send_json_to({"subscribe": stream, "after": 0, "pictures": True})
    assert (await socket.receive_json_from())["subscribed"] == stream


def parts_of(message: bytes) -> tuple[dict, bytes]:
    head, _, image = message.partition(b"\n")
    return json.loads(head), image


async def test_a_screen_reaches_those_who_asked_and_no_others(watcher):
    user, trajectory_id = watcher
    stream = stream_of(trajectory_id)
    reader, viewer = await open_socket(user), await open_socket(user)
    await subscribe(reader, stream)
    assert not await sync_to_async(is_watched)(stream)
    await watch(viewer, stream)
    assert await sync_to_async(is_watched)(stream)
    seen = [(row.person_name, row.object_id) async for row in AuditEntry.objects.filter(action="watched")]
    assert seen == [(user.username, str(trajectory_id))], "it is the viewer who is noted, once"
    await sync_to_async(show)(trajectory_id, 3)
    head, image = parts_of(await viewer.receive_from())
    assert (head["stream"], head["index"], head["frame"]) == (stream, 3, f"{3:064x}")
    assert (head["width"], head["height"], head["observed_at_ms"]) == (64, 48, 1500)
    assert (head["kind"], image) == ("image/png", b"PNG\n\n\x03")
    await publish_many(stream, range(1))
    assert [event["seq"] for event in await receive_events(viewer, 1)] == [1]
    assert [event["seq"] for event in await receive_events(reader, 1)] == [1], "an event and no picture"
    await viewer.send_json_to({"unsubscribe": stream})
    await viewer.send_json_to({"ping": 1})
    await viewer.receive_json_from()
    assert not await sync_to_async(is_watched)(stream)
    for socket in (reader, viewer):
        await socket.disconnect()


async def test_a_wide_screen_comes_as_a_jpeg(watcher):
    user, trajectory_id = watcher
    viewer = await open_socket(user)
    await watch(viewer, stream_of(trajectory_id))
    await sync_to_async(show)(trajectory_id, 1, SMALL_WIDTH + 8)
    head, image = parts_of(await viewer.receive_from())
    assert head["kind"] == "image/jpeg"
    assert image[:3] == b"\xff\xd8\xff"
    await viewer.disconnect()


async def test_a_stranger_gets_no_screen(watcher):
    _, trajectory_id = watcher
    stranger = await open_socket(await sync_to_async(make_user)(Role.VIEWER))
    await stranger.send_json_to({"subscribe": stream_of(trajectory_id), "after": 0, "pictures": True})
    assert (await stranger.receive_json_from())["error"]["code"] == "denied"
    assert not await sync_to_async(is_watched)(stream_of(trajectory_id))
    await stranger.disconnect()


def test_a_worker_goes_on_without_redis(watcher, settings):
    broadcast._client.cache_clear()
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    try:
        assert not is_watched(stream_of(watcher[1]))
        show(watcher[1], 0)
    finally:
        broadcast._client.cache_clear()


async def test_a_browser_that_has_left_is_no_failure(caplog):
    """ASGI servers raise a kind of OSError for what is sent to it before its disconnect arrives."""

    async def gone(message: dict) -> None:
        raise BrokenPipeError

    consumer = LiveConsumer()
    consumer.base_send = gone
    consumer.feeds, consumer.wake = {"trajectory.1": Feed("trajectory.1", 0)}, asyncio.Event()
    consumer.pictures = {"trajectory.1": {"stream": "trajectory.1", "head": {}, "image": b"x"}}
    consumer.wake.set()
    await consumer.run_sender()
    assert caplog.records == []
