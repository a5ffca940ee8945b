"""`/ws/live/`: who gets in, and that every event arrives exactly once and in order."""

import asyncio

import pytest
from asgiref.sync import sync_to_async

from testing.factories import make_experiment, make_team, make_trajectory, make_user
from testing.live_client import LIMIT_S, communicator, open_socket, publish_many, receive_events, subscribe
from webapp.live import consumers, stream_access
from webapp.live.event_publishing import publish
from webapp.live.models import Event

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def watcher(transactional_db):
    """A viewer, and a stream of their team."""
    team = make_team()
    viewer = make_user("viewer", team=team)
    return viewer, f"trajectory.{make_trajectory(team=team, turns=0).pk}"


def numbers(events: list[dict]) -> list[int]:
    return [event["seq"] for event in events]


async def test_nobody_signed_in_is_told_so_and_closed():
    socket = communicator()
    assert (await socket.connect())[0]
    assert (await socket.receive_json_from())["error"]["code"] == "signed_out"
    assert (await socket.receive_output())["code"] == consumers.CLOSE_SIGNED_OUT


@pytest.mark.parametrize("num_turns_of_the_loop", range(6))
async def test_the_sender_of_a_page_that_leaves_as_an_event_comes_ends(num_turns_of_the_loop):
    consumer = consumers.LiveConsumer()
    consumer.feeds, consumer.pictures, consumer.wake = {}, {}, asyncio.Event()
    consumer.sender = asyncio.create_task(consumer.run_sender())
    for _ in range(8):  # it waits for an event now
        await asyncio.sleep(0)
    consumer.wake.set()
    for _ in range(num_turns_of_the_loop):
        await asyncio.sleep(0)
    async with asyncio.timeout(LIMIT_S):
        await consumer.disconnect(1000)
    assert consumer.sender.done()


async def test_a_page_of_another_site_cannot_connect(watcher):
    connected, _ = await communicator(origin=b"http://evil.example").connect()
    assert not connected


async def test_a_stranger_may_not_read_a_teams_streams(watcher):
    _, stream = watcher
    experiment = await sync_to_async(make_experiment)()
    socket = await open_socket(await sync_to_async(make_user)("admin"))
    names = [stream, f"experiment.{experiment.pk}", "trajectory.999999", "trajectory.9" + "9" * 30]
    for name in [*names, "trajectory.", "trajectory.x", "queue.1", "secrets", "experiment.1.2"]:
        assert (await subscribe(socket, name))["error"]["code"] == "denied", name
    await sync_to_async(publish)(stream, "turn.added", {})
    assert await socket.receive_nothing(0.2)
    await socket.disconnect()


async def test_any_member_reads_the_fleet_and_the_queue_and_others_do_not():
    member = await open_socket(await sync_to_async(make_user)("viewer"))
    loner = await open_socket(await sync_to_async(make_user)(None))
    for stream in ("fleet", "queue"):
        assert await subscribe(member, stream) == {"subscribed": stream, "seq": 0}
        assert (await subscribe(loner, stream))["error"]["code"] == "denied"
    await member.disconnect()
    await loner.disconnect()


@pytest.mark.parametrize(
    "text", ["{}", "x", "[]", '{"subscribe": "fleet", "after": -1}', '{"subscribe": "fleet", "after": "1"}']
)
async def test_a_malformed_message_is_answered_and_the_socket_lives(watcher, text):
    socket = await open_socket(watcher[0])
    await socket.send_to(text_data=text)
    assert (await socket.receive_json_from())["error"]["code"] == "bad_message"
    await socket.send_json_to({"ping": 7})
    assert await socket.receive_json_from() == {"pong": 7}
    await socket.disconnect()


async def test_what_was_published_before_and_after_subscribing_arrives_in_order(watcher):
    viewer, stream = watcher
    await publish_many(stream, range(3))
    socket = await open_socket(viewer)
    assert await subscribe(socket, stream, after=1) == {"subscribed": stream, "seq": 3}
    await publish_many(stream, range(3, 5))
    events = await receive_events(socket, 4)
    assert numbers(events) == [2, 3, 4, 5]
    assert events[-1] == {"stream": stream, "seq": 5, "type": "turn.added", "payload": {"index": 4}}
    await socket.disconnect()


async def test_without_a_cursor_only_new_events_arrive(watcher):
    viewer, stream = watcher
    await publish_many(stream, range(3))
    socket = await open_socket(viewer)
    await subscribe(socket, stream, after=None)
    await publish_many(stream, range(1))
    assert numbers(await receive_events(socket, 1)) == [4]
    await socket.disconnect()


async def test_a_reconnect_gets_exactly_what_it_missed(watcher):
    viewer, stream = watcher
    first = await open_socket(viewer)
    await subscribe(first, stream)
    await publish_many(stream, range(4))
    seen = numbers(await receive_events(first, 4))
    await first.disconnect()
    await publish_many(stream, range(4, 9))

    second = await open_socket(viewer)
    await subscribe(second, stream, after=seen[-1])
    await publish_many(stream, range(9, 11))
    seen += numbers(await receive_events(second, 7))
    assert seen == list(range(1, 12))
    assert await second.receive_nothing(0.2)
    await second.disconnect()


async def test_a_full_connection_may_subscribe_anew_to_a_stream_that_it_has(watcher, monkeypatch):
    """A page does so when it wants pictures, too."""
    monkeypatch.setattr(consumers, "MAX_STREAMS", 1)
    viewer, stream = watcher
    socket = await open_socket(viewer)
    assert await subscribe(socket, stream) == {"subscribed": stream, "seq": 0}
    assert (await subscribe(socket, "fleet"))["error"]["code"] == "too_many"
    assert await subscribe(socket, stream) == {"subscribed": stream, "seq": 0}
    await socket.disconnect()


async def test_an_unsubscribed_stream_is_silent(watcher):
    viewer, stream = watcher
    socket = await open_socket(viewer)
    await subscribe(socket, stream)
    await socket.send_json_to({"unsubscribe": stream})
    await socket.send_json_to({"ping": 1})
    await socket.receive_json_from()
    await publish_many(stream, range(2))
    assert await socket.receive_nothing(0.2)
    await socket.disconnect()


async def test_concurrent_writers_arrive_in_order_while_the_browser_joins(watcher):
    viewer, stream = watcher
    num_writers, num_each = 4, 40
    writers = [asyncio.create_task(publish_many(stream, range(num_each))) for _ in range(num_writers)]
    socket = await open_socket(viewer)
    await subscribe(socket, stream)
    events = await receive_events(socket, num_writers * num_each)
    await asyncio.gather(*writers)
    assert numbers(events) == list(range(1, num_writers * num_each + 1))
    assert await socket.receive_nothing(0.2)
    await socket.disconnect()


async def test_an_event_that_redis_lost_is_found_at_the_next_tick(watcher, monkeypatch):
    viewer, stream = watcher
    monkeypatch.setattr(consumers, "TICK_S", 0.2)
    socket = await open_socket(viewer)
    await subscribe(socket, stream)
    await Event.objects.acreate(stream=stream, seq=1, type="turn.added", payload={})
    await stream_access.Stream.objects.acreate(name=stream, last_seq=1)
    assert numbers(await receive_events(socket, 1)) == [1]
    await socket.disconnect()


async def test_a_browser_older_than_what_is_kept_is_told_to_load_anew(watcher):
    viewer, stream = watcher
    await publish_many(stream, range(6))
    await Event.objects.filter(stream=stream, seq__lte=4).adelete()
    socket = await open_socket(viewer)
    await subscribe(socket, stream, after=2)
    events = await receive_events(socket, 3)
    assert [(event["seq"], event["type"]) for event in events] == [
        (4, "stream.reset"),
        (5, "turn.added"),
        (6, "turn.added"),
    ]
    await subscribe(socket, stream, after=500)
    reset = (await receive_events(socket, 1))[0]
    assert (reset["seq"], reset["type"]) == (6, "stream.reset")
    await socket.disconnect()


async def test_losing_the_membership_ends_the_stream(watcher, monkeypatch):
    viewer, stream = watcher
    monkeypatch.setattr(consumers, "TICK_S", 0.1)
    monkeypatch.setattr(consumers, "TICKS_PER_CHECK", 1)
    socket = await open_socket(viewer)
    await subscribe(socket, stream)
    await viewer.memberships.all().adelete()
    while "error" not in (message := await socket.receive_json_from()):
        pass
    assert message["error"]["code"] == "denied"
    await socket.disconnect()


async def test_a_slow_browser_holds_a_bounded_backlog_and_misses_nothing(watcher, monkeypatch):
    viewer, stream = watcher
    num_events, entered, release = 400, asyncio.Event(), asyncio.Event()
    backlog: list[int] = []
    send = consumers.LiveConsumer.send

    async def slow_send(self, text_data: str) -> None:
        if "turn.added" in text_data:
            entered.set()
            await release.wait()
        await send(self, text_data=text_data)

    monkeypatch.setattr(consumers.LiveConsumer, "send", slow_send)
    original = consumers.LiveConsumer.live_event

    async def measured(self, message):
        await original(self, message)
        backlog.append(max(len(feed.waiting) for feed in self.feeds.values()))

    monkeypatch.setattr(consumers.LiveConsumer, "live_event", measured)
    socket = await open_socket(viewer)
    await subscribe(socket, stream)
    await publish_many(stream, range(1))
    async with asyncio.timeout(LIMIT_S):
        await entered.wait()
    await publish_many(stream, range(1, num_events))
    while len(backlog) < num_events:
        await asyncio.sleep(0.01)
    release.set()
    assert numbers(await receive_events(socket, num_events)) == list(range(1, num_events + 1))
    assert max(backlog) <= 64
    await socket.disconnect()
