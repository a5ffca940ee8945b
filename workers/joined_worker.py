"""The env worker of a joined host: takes jobs over HTTPS, runs them in threads, reports through the spool.

    python -m workers.joined_worker --slots 4
It knows no Celery, no Redis and no database; the desk host of this machine is started beside it.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
django.setup()

from django.conf import settings  # noqa: E402  (settings need django.setup)
from django.db import DatabaseError  # noqa: E402

from webapp.worker_door import workers as door  # noqa: E402
from workers import identity, worker_row  # noqa: E402
from workers.door.https_door import DoorRefused  # noqa: E402
from workers.door.through import https_door, through  # noqa: E402
from workers.env import slots, trajectory_job  # noqa: E402
from workers.env.reporting import parking_reports  # noqa: E402
from workers.env.reporting.trajectories import beat_held  # noqa: E402
from workers.environments.gateway import delete_unused_sandboxes  # noqa: E402
from workers.fleet import desk_host_mirror  # noqa: E402

log = logging.getLogger("joined worker")

BEAT_S = 2.0
FETCH_S = 0.3
"""Between two questions for jobs while slots are free."""
STOP_S = 4.0

_begin_anew = through(door.begin_anew)
_take_jobs = through(door.take_jobs)


class JoinedWorker:
    """The slots of one host."""

    def __init__(self, num_slots: int) -> None:
        self._num_slots = num_slots
        self._stopping = threading.Event()
        self._is_draining = False
        self._running: set[int] = set()
        self._threads = ThreadPoolExecutor(num_slots, thread_name_prefix="slot")

    def run(self) -> None:
        """Until a signal. What was begun before this process ended with the last one."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stopping.set())
        me = identity.current()
        log.info("%s begins with %s slots", me.name, self._num_slots)
        self._start("heartbeat", self._beat_forever)
        _begin_anew(me.name)
        sender = self._start("reports", lambda: https_door().deliver_forever(self._stopping))
        while https_door().spool.oldest(1) and not self._stopping.wait(FETCH_S):
            pass  # jobs are taken when all that the last process left has been recorded
        desk_host_mirror.start(self._stopping)
        delete_unused_sandboxes.start(
            self._stopping, parking_reports.gateways_in_use, parking_reports.trajectory_keys
        )
        log.info("takes jobs")
        while not self._stopping.wait(FETCH_S):
            self._fetch()
        self._threads.shutdown(wait=False, cancel_futures=True)
        sender.join(STOP_S)
        self._say_goodbye()
        slots.release_all()

    def _fetch(self) -> None:
        """Take as many jobs as there are free slots, and one to have at hand."""
        wanted = self._num_slots + 1 - len(self._running)
        if wanted <= 0 or self._is_draining:
            return
        try:
            taken = _take_jobs(identity.current().name, wanted)
        except (DatabaseError, DoorRefused) as error:
            log.warning("no jobs, asking again in %.0f s: %s", BEAT_S, error)
            self._stopping.wait(BEAT_S)
            return
        for trajectory_id in taken:
            self._running.add(trajectory_id)
            self._threads.submit(self._run_one, trajectory_id)

    def _run_one(self, trajectory_id: int) -> None:
        try:
            trajectory_job.run(trajectory_id)
        except Exception:  # the edge of a thread: the trajectory was recorded as errored
            log.exception("trajectory %s", trajectory_id)
        finally:
            self._running.discard(trajectory_id)

    def _beat_forever(self) -> None:
        while True:
            try:
                self._is_draining = worker_row.beat()
                beat_held()
            except (DatabaseError, DoorRefused) as error:
                log.warning("heartbeat not recorded, trying again in %.0f s: %s", BEAT_S, error)
            if self._stopping.wait(BEAT_S):
                return

    def _say_goodbye(self) -> None:
        try:
            worker_row.end()
        except (DatabaseError, DoorRefused) as error:
            log.warning("the server was not told that this worker stops: %s", error)

    def _start(self, name: str, body: object) -> threading.Thread:
        thread = threading.Thread(target=body, name=name, daemon=True)  # type: ignore[arg-type]
        thread.start()
        return thread


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m workers.joined_worker", description=__doc__)
    parser.add_argument("--slots", type=int, default=4, help="desktops in use at once")
    options = parser.parse_args()
    if settings.JOINED is None:
        parser.error("this host has joined nothing; run `make join SERVER=... TOKEN=...` first")
    host = settings.JOINED.name
    identity.announce(identity.Identity(name=f"env1@{host}", queue="env", slots=options.slots, host=host))
    JoinedWorker(options.slots).run()
    os._exit(0)  # slots in the middle of a trajectory are not waited for: the server runs those again


if __name__ == "__main__":
    main()
