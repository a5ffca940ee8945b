"""What both kinds of workers of a joined host do: beat, deliver reports, take jobs until they are stopped."""

import logging
import signal
import threading
import time
from functools import partial
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError

from webapp.worker_door.workers import begin_anew
from workers import identity, stopping, worker_row
from workers.joined.spooled_reports import PAUSE_S, Spool, SpooledReports
from workers.reports.contract import CallRefused
from workers.reports.current import use_reports
from workers.reports.repeated_step import RepeatedStep

log = logging.getLogger("joined worker")

FETCH_S = 0.3
"""Between two questions for jobs while there are none."""
STOP_S = 4.0


class JoinedWorker:
    """One process of a host; `start` and `fetch` are its kind's."""

    def __init__(self, reports: SpooledReports) -> None:
        self._reports = reports
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
        needed = partial(RepeatedStep, at_fault=stopping.end_process)
        needed("heartbeat", self._beat, worker_row.BEAT_S, stopping=self.stopping).start()
        self._reports.report(begin_anew, me.name)
        newest = self._reports.spool.newest()
        needed("reports", self._reports.deliver_forever, PAUSE_S).start()
        while self._has_left(newest) and not self.stopping.wait(FETCH_S):
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
        """Take the jobs that there is room for. Raises DatabaseError, CallRefused."""
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
        except (DatabaseError, CallRefused) as error:
            log.warning("no jobs, asking again in %.0f s: %s", worker_row.BEAT_S, error)
            self.stopping.wait(worker_row.BEAT_S)

    def _beat(self) -> None:
        self.is_draining = worker_row.beat()
        self.beat()

    def _has_left(self, newest: int) -> bool:
        """Whether a report up to `newest` waits for delivery."""
        return any(waiting.number <= newest for waiting in self._reports.spool.oldest(1))

    def _deliver_last(self) -> None:
        leave_by = time.monotonic() + STOP_S
        while self._reports.spool.oldest(1) and time.monotonic() < leave_by:
            time.sleep(FETCH_S)

    def _say_goodbye(self) -> None:
        try:
            worker_row.end()
        except (DatabaseError, CallRefused) as error:
            log.warning("the server did not hear that this worker stops: %s", error)


def announce(role: str, number: int, slots: int) -> SpooledReports:
    """Who this process is, and how it reports. Raises SystemExit on a host that has joined nothing."""
    if settings.JOINED is None:
        raise SystemExit("this host has joined nothing; run `make join SERVER=...` first")
    host = settings.JOINED.name
    identity.announce(identity.Identity(name=f"{role}{number}@{host}", queue=role, slots=slots, host=host))
    reports = SpooledReports(settings.JOINED, Spool(Path(settings.DATA_DIR) / "spool.sqlite3"))
    use_reports(reports)
    return reports
