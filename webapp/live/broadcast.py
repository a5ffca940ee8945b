"""Sends committed events to the channel layer from ordinary, blocking code.

The layer's own `group_send` is a coroutine: called from a worker's thread it would need a new event loop
and a new Redis connection each time (2 to 3 ms). This writes the same bytes to the same channel with a
pooled blocking client (0.1 ms). A test sends through here and receives through the real layer.
"""

import logging
import time
from functools import cache

import redis
from channels.layers import get_channel_layer
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

logger = logging.getLogger(__name__)

SEND_TIMEOUT_S = 0.5
PAUSE_AFTER_FAILURE_S = 1.0
"""While Redis is away writers must not wait for it each time; browsers catch up by their cursors."""

_silent_until = 0.0


def group_name(stream: str) -> str:
    """The channel layer group of a stream."""
    return f"live.{stream}"


@cache
def _client() -> redis.Redis:
    # One retry at once: after a restart of Redis the pooled connection is stale, a fresh one works.
    return redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=SEND_TIMEOUT_S,
        socket_connect_timeout=SEND_TIMEOUT_S,
        retry=Retry(NoBackoff(), 1),
    )


def picture_group(stream: str) -> str:
    """The group of those who want its pictures, too."""
    return f"pictures.{stream}"


def broadcast(stream: str, seq: int, event_type: str, payload: dict[str, object]) -> bool:
    """Tell every subscriber of `stream` of a committed event; False when Redis could not be reached."""
    message: dict[str, object] = {
        "type": "live.event",
        "stream": stream,
        "seq": seq,
        "event_type": event_type,
        "payload": payload,
    }
    return _publish(group_name(stream), message, f"event {stream}#{seq}")


def is_watched(stream: str) -> bool:
    """Whether any browser wants the pictures of this stream; False while Redis is away."""
    if time.monotonic() < _silent_until:
        return False
    try:
        ((_, number),) = _client().pubsub_numsub(_channel(picture_group(stream)))
    except redis.RedisError:
        return False
    return bool(number)


def send_picture(stream: str, head: dict[str, object], image: bytes) -> None:
    """Send a picture to those who want it, before the event that names it: a lost one is fetched then."""
    message: dict[str, object] = {"type": "live.picture", "stream": stream, "head": head, "image": image}
    _publish(picture_group(stream), message, f"picture of {stream}")


def _publish(group: str, message: dict[str, object], name: str) -> bool:
    """False when it was not sent; `name` says in the log what that was."""
    global _silent_until
    if time.monotonic() < _silent_until:
        return False
    try:
        _client().publish(_channel(group), get_channel_layer().serialize(message))
    except redis.RedisError as error:
        _silent_until = time.monotonic() + PAUSE_AFTER_FAILURE_S
        logger.warning("live %s not sent, browsers will catch up: %s", name, error)
        return False
    return True


def _channel(group: str) -> str:
    prefix = settings.CHANNEL_LAYERS["default"]["CONFIG"]["prefix"]
    return f"{prefix}__group__{group}"
