"""A gpu worker of a joined host: holds one experiment at a time, as one of Celery's does.

python -m workers.joined.gpu_worker --number 1
"""

import argparse
import logging
import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
django.setup()

from webapp.lib.send_job import JOIN_GANG  # noqa: E402  (settings need django.setup)
from webapp.worker_door.workers import take_gpu_jobs  # noqa: E402
from workers import identity, stopping  # noqa: E402
from workers.gpu import attempt, checkpoint_exports, checkpoint_uploads, gang_member, gpu_use  # noqa: E402
from workers.gpu.child_processes import claim_name, sweep_orphans  # noqa: E402
from workers.joined.joined_worker import JoinedWorker, announce  # noqa: E402
from workers.processes.record_owners import OwnerLives  # noqa: E402

log = logging.getLogger("joined worker")


class JoinedGpuWorker(JoinedWorker):
    """Its job runs in the thread that takes jobs: one at a time."""

    def start(self) -> None:
        name = identity.current().name
        gpu_use.announce_gpus(name)
        gpu_use.announce_for_ever(name, self.stopping)
        checkpoint_exports.start(self.stopping)
        checkpoint_uploads.start(self.stopping)

    def stop(self) -> None:
        stopping.asked.set()
        super().stop()

    def fetch(self) -> None:
        for job in self._reports.request(take_gpu_jobs, identity.current().name):
            run = gang_member.run if job.name == JOIN_GANG else attempt.run
            try:
                run(*job.arguments)
            except Exception:  # the edge of a job: the attempt was recorded as crashed
                log.exception("%s%s", job.name, job.arguments)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m workers.joined.gpu_worker", description=__doc__)
    parser.add_argument("--number", type=int, default=1, help="tells several of one host apart")
    options = parser.parse_args()
    reports = announce("gpu", options.number, 1)
    try:
        claim_name()
    except OwnerLives as error:
        raise SystemExit(str(error)) from error
    sweep_orphans()
    JoinedGpuWorker(reports).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
