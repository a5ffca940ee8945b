"""A gpu worker for one attempt, as a job of a cluster's scheduler: it starts, runs it, and is gone.

python -m workers.gpu.cluster_job --job slurm-0f3a5c-17 EXPERIMENT ATTEMPT

The exit code is 0 when the attempt ended as planned, also by the scheduler's signal, and 1 after a crash.
Of a job on several nodes the first leads: it begins when all have come.
"""

import argparse
import os
import signal
import sys
import threading
import time
from functools import partial

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
os.environ.setdefault("DESKHAND_DB_CONNECTIONS", "2")
django.setup()

from webapp.lib.outage_retries import patiently  # noqa: E402  (settings need django.setup)
from webapp.worker_door.attempts import has_crashed  # noqa: E402
from webapp.worker_door.cluster_gangs import are_nodes_here, may_begin, own_call  # noqa: E402
from workers import identity, stopping, worker_row  # noqa: E402
from workers.gpu import attempt, checkpoint_exports, checkpoint_uploads, gang_member, gpu_use  # noqa: E402
from workers.gpu.child_processes import claim_name  # noqa: E402
from workers.reports.repeated_step import RepeatedStep  # noqa: E402

LOOK_EVERY_S = 1.0
LEADER_LEAVES_WITHIN_S = 30.0
"""A node that leaves first would have the scheduler end the job before the leader has recorded why."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m workers.gpu.cluster_job", description=__doc__)
    parser.add_argument("--job", required=True, help="the scheduler's name of it")
    index = int(os.environ.get("JOB_COMPLETION_INDEX", "0"))  # of an Indexed Job of Kubernetes
    parser.add_argument("--node", type=int, default=index, help="of a job on several nodes; 0 leads")
    parser.add_argument("experiment", type=int)
    parser.add_argument("attempt", type=int)
    options = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        signal.signal(number, lambda *_: stopping.asked.set())
    job = (options.experiment, options.attempt)
    name = f"gpu@{options.job}-n{options.node}" if options.node else f"gpu@{options.job}"
    identity.announce(identity.Identity(name=name, queue="gpu", slots=1))
    claim_name()
    worker_row.wait_until_recorded()
    ended = threading.Event()
    needed = partial(RepeatedStep, stopping=ended, at_fault=stopping.end_process)
    with needed("heartbeat", worker_row.beat, worker_row.BEAT_S):
        gpu_use.announce_gpus(name)
        has_begun = _follow(*job, name) if options.node else _lead(*job, ended)
    worker_row.end()
    return int(not has_begun or has_crashed(*job))


def _lead(experiment: int, number: int, ended: threading.Event) -> bool:
    """False when the scheduler ended it before it began."""
    checkpoint_exports.start(ended)
    checkpoint_uploads.start(ended)
    while not patiently(are_nodes_here, experiment):
        if stopping.asked.wait(LOOK_EVERY_S):
            return False
        if not patiently(may_begin, experiment, number):
            return True
    attempt.run(experiment, number)
    return True


def _follow(experiment: int, number: int, name: str) -> bool:
    """As `_lead`, of another node."""
    while (call := patiently(own_call, experiment, number, name)) is None:
        if stopping.asked.wait(LOOK_EVERY_S):
            return False
        if not patiently(may_begin, experiment, number):
            return True
    gang_member.run(call.attempt_id, call.host)
    leaves_by = time.monotonic() + LEADER_LEAVES_WITHIN_S
    while patiently(may_begin, experiment, number) and time.monotonic() < leaves_by:
        time.sleep(LOOK_EVERY_S)
    return True


if __name__ == "__main__":
    sys.exit(main())
