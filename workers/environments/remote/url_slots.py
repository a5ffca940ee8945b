"""Slots: how many trajectories of all env workers may use one URL at once.

A slot is a key in Redis that its holder renews; a holder that died frees it by its silence. Servers that do
one thing at a time, or close a running episode when there are too many, need the limit on our side.
"""

import hashlib
import logging
import random
import threading

import redis
from redis.exceptions import LockError, RedisError
from redis.lock import Lock

from workers.environments.contract import AtCapacity

log = logging.getLogger(__name__)

SLOT_S = 30.0
"""Longer than a hiccup of Redis or of a worker; a dead worker's slot stays empty for as long."""
RENEW_EVERY_S = 8.0
RETRY_AFTER_S = 3.0


class UrlSlot:
    """The right to use one URL until it is given up."""

    def __init__(self, url: str, number: int, lock: Lock) -> None:
        self.url = url
        self.number = number
        """1 = the first of this URL."""
        self.lost = threading.Event()
        self._lock = lock
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="slot", daemon=True)
        self._thread.start()

    def give_up(self) -> None:
        """Idempotent."""
        if self._stop.is_set():
            return
        self._stop.set()
        self._thread.join(timeout=5.0)
        try:
            self._lock.release()
        except (LockError, RedisError) as error:
            log.warning("slot of %s not released, it expires: %s", self.url, error)

    def _keep(self) -> None:
        while not self._stop.wait(RENEW_EVERY_S):
            try:
                self._lock.reacquire()
            except LockError:
                log.warning("slot of %s lost", self.url)
                self.lost.set()
                return
            except RedisError as error:
                log.warning("slot of %s not renewed, trying again: %s", self.url, error)


def acquire_slot(client: redis.Redis, urls: tuple[str, ...], slots_per_url: int) -> UrlSlot:
    """A free slot at any of the URLs. Raises AtCapacity."""
    numbered = [(url, number) for number in range(slots_per_url) for url in random.sample(urls, len(urls))]
    for url, number in numbered:
        name = f"deskhand:slot:{hashlib.sha256(url.encode()).hexdigest()[:16]}:{number}"
        lock = client.lock(name, timeout=SLOT_S, blocking=False, thread_local=False)
        try:
            if lock.acquire(blocking=False):
                return UrlSlot(url, number + 1, lock)
        except RedisError as error:
            raise AtCapacity(f"Redis does not answer, so it is unknown which URL is free: {error}") from error
    text = f"all {len(numbered)} slots of the {len(urls)} URLs are in use"
    raise AtCapacity(text, retry_after_s=RETRY_AFTER_S)
