"""A gpu worker for one attempt, as a job of a cluster's scheduler: it starts, runs it, and is gone.

python -m workers.gpu.cluster_job --job slurm-0f3a5c-17 EXPERIMENT ATTEMPT

The exit code is 0 when the attempt ended as planned, also by the scheduler's signal, and 1 after a crash.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from functools import partial

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
os.environ.setdefault("DESKHAND_DB_CONNECTIONS", "2")
django.setup()

from webapp.worker_door.attempts import has_crashed  # noqa: E402  (settings need django.setup)
from workers import identity, stopping, worker_row  # noqa: E402
from workers.gpu import attempt, checkpoint_exports, checkpoint_uploads, gpu_use  # noqa: E402
from workers.gpu.child_processes import claim_name  # noqa: E402
from workers.reports.repeated_step import RepeatedStep  # noqa: E402

log = logging.getLogger("cluster job")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m workers.gpu.cluster_job", description=__doc__)
    parser.add_argument("--job", required=True, help="the scheduler's name of it")
    parser.add_argument("experiment", type=int)
    parser.add_argument("attempt", type=int)
    options = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        signal.signal(number, lambda *_: stopping.asked.set())
    name = f"gpu@{options.job}"
    identity.announce(identity.Identity(name=name, queue="gpu", slots=1))
    claim_name()
    worker_row.wait_until_recorded()
    ended = threading.Event()
    needed = partial(RepeatedStep, stopping=ended, at_fault=stopping.end_process)
    with needed("heartbeat", worker_row.beat, worker_row.BEAT_S):
        gpu_use.announce_gpus(name)
        checkpoint_exports.start(ended)
        checkpoint_uploads.start(ended)
        attempt.run(options.experiment, options.attempt)
    worker_row.end()
    return int(has_crashed(options.experiment, options.attempt))


if __name__ == "__main__":
    sys.exit(main())
