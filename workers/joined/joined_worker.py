"""What both kinds of workers of a joined host do: beat, deliver reports, take jobs until they are stopped."""

from __future__ import annotations

import logging
import signal
import threading
import time
from functools import partial

from django.conf import settings
from django.db import DatabaseError

from webapp.worker_door import workers as door
from workers import identity, worker_row
from workers.door.https_door import PAUSE_S, DoorRefused
from workers.door.repeated_step import RepeatedStep
from workers.door.through import https_door, through

log = logging.getLogger("joined worker")

FETCH_S = 0.3
"""Between two questions for jobs while there are none."""
STOP_S = 4.0

_begin_anew = through(door.begin_anew)


class JoinedWorker:
    """One process of a host; `start` and `fetch` are its kind's."""

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self.has_room = threading.Event()
        """A job has ended: the next is asked for at once."""
        self.is_draining = False

    def run(self) -> None:
        """Until a signal. What was begun before this process ended with the last one."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.stop())
        me = identity.current()
        log.info("%s begins with %s slots", me.name, me.slots)
        needed = partial(RepeatedStep, is_needed=True, at_once=True)
        needed("heartbeat", self._beat, every_s=worker_row.BEAT_S, stopping=self.stopping).start()
        _begin_anew(me.name)
        newest = https_door().spool.newest()
        needed("reports", https_door().deliver_forever, every_s=PAUSE_S).start()
        while https_door().spool.holds_until(newest) and not self.stopping.wait(FETCH_S):
            pass  # jobs are taken when all that the last process left has been recorded
        self.start()
        log.info("takes jobs")
        while not self.stopping.is_set():
            self._fetch()
            self.has_room.wait(FETCH_S)
            self.has_room.clear()
        self.end()
        self._deliver_last()
        self._say_goodbye()

    def stop(self) -> None:
        """As a signal asks."""
        self.stopping.set()
        self.has_room.set()

    def start(self) -> None:
        """What else runs in threads."""

    def fetch(self) -> None:
        """Take the jobs that there is room for. Raises DatabaseError, DoorRefused."""
        raise NotImplementedError

    def beat(self) -> None:
        """One heartbeat of what it runs."""

    def end(self) -> None:
        """What runs is left as it is."""

    def _fetch(self) -> None:
        if self.is_draining:
            return
        try:
            self.fetch()
        except (DatabaseError, DoorRefused) as error:
            log.warning("no jobs, asking again in %.0f s: %s", worker_row.BEAT_S, error)
            self.stopping.wait(worker_row.BEAT_S)

    def _beat(self) -> None:
        self.is_draining = worker_row.beat()
        self.beat()

    def _deliver_last(self) -> None:
        leave_by = time.monotonic() + STOP_S
        while https_door().spool.oldest(1) and time.monotonic() < leave_by:
            time.sleep(FETCH_S)

    def _say_goodbye(self) -> None:
        try:
            worker_row.end()
        except (DatabaseError, DoorRefused) as error:
            log.warning("the server was not told that this worker stops: %s", error)


def announce(role: str, number: int, slots: int) -> None:
    """Who this process is. Raises SystemExit on a host that has joined nothing."""
    if settings.JOINED is None:
        raise SystemExit("this host has joined nothing; run `make join SERVER=...` first")
    host = settings.JOINED.name
    identity.announce(identity.Identity(name=f"{role}{number}@{host}", queue=role, slots=slots, host=host))
