"""`/ws/live/`: one socket per page, any number of streams, each event exactly once and in order.

    -> {"subscribe": "trajectory.17", "after": 41}     after: the page's cursor; absent = from now on
    <- {"subscribed": "trajectory.17", "seq": 45}      45: newest number; 42..45 follow
    <- {"stream": ..., "seq": 42, "type": "turn.added", "payload": {...}}
    <- {"stream": ..., "seq": 90, "type": "stream.reset", "payload": {}}    42..90 were pruned: load anew
    -> {"subscribe": "trajectory.17", "after": 41, "pictures": true}    its screens as they are taken, too:
    <- {"stream": ..., "index": 4, "frame": SHA, ...} NEWLINE IMAGE    binary; of several the newest only
    -> {"unsubscribe": "trajectory.17"}    -> {"ping": 1}  <- {"pong": 1}    <- {"ping": 0} when quiet
    <- {"error": {"code": "denied", "message": "..."}, "stream": "trajectory.17"}

Receiving only fills `Feed`s; one task per socket empties them, so a slow browser delays no other and holds a
bounded backlog.
"""

import asyncio
import json
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import close_old_connections

from webapp.lib.request_values import MAX_WHOLE, BadValue, json_object
from webapp.live import stream_access
from webapp.live.broadcast import group_name, picture_group
from webapp.live.stream_access import LiveEvent
from webapp.live.subscription_backlog import Feed

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

CLOSE_SIGNED_OUT = 4401
CLOSE_FAILED = 1011
MAX_STREAMS = 256
MAX_MESSAGE_CHARS = 4096
TICK_S = 5.0
"""How long an event that the channel layer lost can stay unseen: the database is asked this often."""
TICKS_PER_CHECK = 6
"""Ticks between two checks of the rights."""


class LiveConsumer(AsyncWebsocketConsumer):
    """A browser's live connection."""

    async def connect(self) -> None:
        self.feeds: dict[str, Feed] = {}
        self.pictures: dict[str, dict[str, Any]] = {}
        self.wake = asyncio.Event()
        self.sender: asyncio.Task[None] | None = None
        await self.accept()
        self.user = self.scope["user"]
        if not self.user.is_authenticated:
            await self.refuse("", "signed_out", "You are signed out; sign in and reload the page.")
            await self.close(CLOSE_SIGNED_OUT)
            return
        self.sender = asyncio.create_task(self.run_sender())

    async def disconnect(self, code: int) -> None:
        if self.sender:
            self.sender.cancel()
            await asyncio.gather(self.sender, return_exceptions=True)
        for stream in list(self.feeds):
            await self.leave(stream)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        message = _parse(text_data)
        if not self.sender or message is None:
            await self.refuse("", "bad_message", 'Send {"subscribe": STREAM, "after": NUMBER}.')
        elif "ping" in message:
            await self.send_json({"pong": message["ping"]})
        elif "unsubscribe" in message:
            await self.leave(str(message["unsubscribe"]))
        else:
            wants_pictures = message.get("pictures") is True
            await self.subscribe(str(message["subscribe"]), message.get("after"), wants_pictures)

    async def subscribe(self, stream: str, after: int | None, wants_pictures: bool) -> None:
        if stream not in self.feeds and len(self.feeds) >= MAX_STREAMS:
            await self.refuse(stream, "too_many", f"At most {MAX_STREAMS} streams per connection.")
        elif not await in_database(stream_access.may_subscribe, self.user, stream):
            await self.refuse(stream, "denied", f"{stream} does not exist, or you may not read it.")
        else:
            await self.channel_layer.group_add(group_name(stream), self.channel_name)
            if wants_pictures:
                await in_database(stream_access.note_watching, self.user, stream)
                await self.channel_layer.group_add(picture_group(stream), self.channel_name)
            # After joining the group: an event between the two is in the database and in the group.
            newest = (await in_database(stream_access.last_seqs, [stream])).get(stream, 0)
            await self.send_json({"subscribed": stream, "seq": newest})
            self.feeds[stream] = Feed(stream, newest if after is None else after)
            self.wake.set()

    async def leave(self, stream: str) -> None:
        if self.feeds.pop(stream, None):
            for group in (group_name(stream), picture_group(stream)):
                await self.channel_layer.group_discard(group, self.channel_name)

    async def live_event(self, message: dict[str, Any]) -> None:
        """From the channel layer."""
        feed = self.feeds.get(message["stream"])
        if feed:
            feed.offer(LiveEvent(message["seq"], message["event_type"], message["payload"]))
            self.wake.set()

    async def live_picture(self, message: dict[str, Any]) -> None:
        """From the channel layer: the newest one of a stream waits to be sent."""
        self.pictures[message["stream"]] = message
        self.wake.set()

    async def run_sender(self) -> None:
        """The edge of the sending task: on any failure the browser has to come back with its cursors."""
        try:
            await self.send_forever()
        except OSError:
            return  # ASGI: what is sent to a browser that has left. Its disconnect message is on the way.
        except Exception:
            logger.exception("live connection of user %s failed", self.user.pk)
            await self.close(CLOSE_FAILED)

    async def send_forever(self) -> None:
        """Empty the feeds whenever one fills; look into the database at every tick."""
        num_ticks, last_tick = 0, time.monotonic()
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK_S):
                    await self.wake.wait()
            self.wake.clear()
            await self.send_pictures()
            if time.monotonic() - last_tick >= TICK_S:
                num_ticks, last_tick = num_ticks + 1, time.monotonic()
                await self.tick(check_rights=num_ticks % TICKS_PER_CHECK == 0)
            for feed in list(self.feeds.values()):
                await self.drain(feed)

    async def send_pictures(self) -> None:
        """Those that came since the last time, before the events that tell of them."""
        pictures, self.pictures = self.pictures, {}
        for stream, message in pictures.items():
            if stream in self.feeds:
                head = json.dumps({**message["head"], "stream": stream}, separators=(",", ":"))
                await self.send(bytes_data=head.encode() + b"\n" + message["image"])

    async def tick(self, *, check_rights: bool) -> None:
        """Find events that the layer lost; say that the line is alive; drop what may no longer be read."""
        if check_rights:
            kept = await in_database(stream_access.allowed, self.user, list(self.feeds))
            for stream in set(self.feeds) - kept:
                await self.leave(stream)
                await self.refuse(stream, "denied", f"You may no longer read {stream}.")
        newest = await in_database(stream_access.last_seqs, list(self.feeds))
        for stream, feed in self.feeds.items():
            feed.is_behind = feed.is_behind or newest.get(stream, 0) > feed.cursor
        await self.send_json({"ping": 0})

    async def drain(self, feed: Feed) -> None:
        """Send what is waiting for one stream; from the database where something is missing."""
        while feed.is_behind or feed.waiting:
            if not feed.is_behind:
                await self.deliver(feed.stream, feed.take())
                continue
            page = await in_database(stream_access.read_after, feed.stream, feed.cursor)
            is_pruned, events = feed.catch_up(page)
            if is_pruned:
                seq = events[0].seq - 1 if events else feed.cursor
                reset = LiveEvent(seq, "stream.reset")
                await self.deliver(feed.stream, [reset])
            await self.deliver(feed.stream, events)

    async def deliver(self, stream: str, events: list[LiveEvent]) -> None:
        for event in events:
            if stream not in self.feeds:
                return
            await self.send_json(
                {"stream": stream, "seq": event.seq, "type": event.type, "payload": event.payload}
            )

    async def refuse(self, stream: str, code: str, text: str) -> None:
        await self.send_json({"error": {"code": code, "message": text}, "stream": stream})

    async def send_json(self, message: dict[str, object]) -> None:
        await self.send(text_data=json.dumps(message, separators=(",", ":")))


async def in_database(function: Callable[..., Result], *args: Any) -> Result:
    """Call blocking code in a thread of the pool.

    Channels' own helper puts the work of all sockets into one thread: a slow query would delay all pages.
    """

    def call() -> Result:
        close_old_connections()
        try:
            return function(*args)
        finally:
            close_old_connections()

    return await asyncio.to_thread(call)


def _parse(text: str | None) -> dict[str, Any] | None:
    """The message when it is one of the three kinds with well-typed fields, else None."""
    if not text or len(text) > MAX_MESSAGE_CHARS:
        return None
    try:
        message = json_object(text, "message")
    except BadValue:
        return None
    if not {"subscribe", "unsubscribe", "ping"} & set(message):
        return None
    after = message.get("after")
    is_cursor = isinstance(after, int) and not isinstance(after, bool) and 0 <= after < MAX_WHOLE
    return message if after is None or is_cursor else None
