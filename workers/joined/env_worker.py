"""The env worker of a joined host: runs trajectories in threads, reports through the spool.

    python -m workers.joined.env_worker --slots 4
The desk host of this machine is started beside it.
"""

import argparse
import logging
import os
from concurrent.futures import ThreadPoolExecutor

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
django.setup()

from webapp.worker_door.workers import take_jobs  # noqa: E402  (models need django.setup)
from workers import identity  # noqa: E402
from workers.env import slots, trajectory_job  # noqa: E402
from workers.env.rented_desktops import gateways_in_use, trajectory_keys  # noqa: E402
from workers.env.running_trajectories import all_held  # noqa: E402
from workers.environments.gateway import delete_unused_sandboxes  # noqa: E402
from workers.fleet import desk_host_mirror  # noqa: E402
from workers.joined.joined_worker import JoinedWorker, announce  # noqa: E402
from workers.joined.spooled_reports import SpooledReports  # noqa: E402

log = logging.getLogger("joined worker")


class JoinedEnvWorker(JoinedWorker):
    """The slots of one host."""

    def __init__(self, reports: SpooledReports, num_slots: int) -> None:
        super().__init__(reports)
        self._num_slots = num_slots
        self._running: set[int] = set()
        self._threads = ThreadPoolExecutor(num_slots, thread_name_prefix="slot")

    def start(self) -> None:
        desk_host_mirror.start(self.stopping)
        delete_unused_sandboxes.start(self.stopping, gateways_in_use, trajectory_keys)

    def fetch(self) -> None:
        """Take as many jobs as there are free slots, and one to have at hand."""
        wanted = self._num_slots + 1 - len(self._running)
        if wanted <= 0:
            return
        taken = self._reports.request(take_jobs, identity.current().name, wanted)
        for trajectory_id, ticket in taken.items():
            self._running.add(trajectory_id)
            self._threads.submit(self._run_one, trajectory_id, ticket)

    def beat(self) -> None:
        self._reports.beat_trajectories(all_held())

    def end(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _run_one(self, trajectory_id: int, ticket: str) -> None:
        try:
            trajectory_job.run(trajectory_id, ticket)
        except Exception:  # the edge of a thread: the trajectory was recorded as errored
            log.exception("trajectory %s", trajectory_id)
        finally:
            self._running.discard(trajectory_id)
            self.has_room.set()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m workers.joined.env_worker", description=__doc__)
    parser.add_argument("--slots", type=int, default=4, help="desktops in use at once")
    options = parser.parse_args()
    JoinedEnvWorker(announce("env", 1, options.slots), options.slots).run()
    slots.release_all()
    os._exit(0)  # slots in the middle of a trajectory are not waited for: the server runs those again


if __name__ == "__main__":
    main()
