"""Whether Redis answers, and how many jobs lie in it."""

from collections.abc import Sequence
from functools import cache

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

TIMEOUT_S = 1.0


@cache
def _client() -> redis.Redis:
    # One retry at once: after a restart of Redis the pooled connection is stale, a fresh one works.
    return redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=TIMEOUT_S,
        socket_connect_timeout=TIMEOUT_S,
        retry=Retry(NoBackoff(), 1),
    )


def redis_answers() -> bool:
    """False when it does not within `TIMEOUT_S`."""
    try:
        return bool(_client().ping())
    except redis.RedisError:
        return False


def queue_lengths(names: Sequence[str]) -> dict[str, int] | None:
    """Jobs that no worker has fetched yet, by queue; None while Redis is away."""
    pipeline = _client().pipeline(transaction=False)
    for name in names:
        pipeline.llen(name)
    try:
        return dict(zip(names, pipeline.execute(), strict=True))
    except redis.RedisError:
        return None
