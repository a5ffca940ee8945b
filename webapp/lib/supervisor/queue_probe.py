"""Proof that a queue has a worker that executes: a ping job through Celery, seen in Redis."""

import asyncio
import secrets

from celery import Celery
from redis.asyncio import Redis

PING_JOB = "workers.jobs.ping"
POLL_INTERVAL_S = 0.05


async def queue_executes(redis_url: str, queue: str, timeout_s: float) -> bool:
    """Send a ping to the queue and wait for its answer; False when none comes within the time."""
    key = f"deskhand:ping:{queue}:{secrets.token_hex(8)}"
    app = Celery("deskhand-ping", broker=redis_url, set_as_current=False)
    try:
        app.send_task(PING_JOB, kwargs={"key": key}, queue=queue, ignore_result=True, expires=timeout_s)
    finally:
        app.close()
    client = Redis.from_url(redis_url)
    try:
        async with asyncio.timeout(timeout_s):
            while not await client.exists(key):
                await asyncio.sleep(POLL_INTERVAL_S)
    except TimeoutError:
        return False
    finally:
        await client.aclose()
    return True
