"""Claims trajectories for this worker, with all that running one needs."""

from __future__ import annotations

from django.db import close_old_connections

from webapp.fleet.models import Worker
from webapp.worker_door import assignments
from webapp.worker_door.assignments import Assignment, Branch, ClaimedTrajectory
from workers import identity, worker_row
from workers.door.through import through

__all__ = ["Assignment", "Branch", "ClaimedTrajectory", "NoPolicy", "claim"]

_claim = through(assignments.claim)


class NoPolicy(Exception):
    """Raised when the experiment's policy server is not (or no longer) there."""


def claim(trajectory_id: int, ticket: str = "") -> Assignment | None:
    """Take the trajectory for this worker; None when another worker has it or it was cancelled.

    `ticket`: what a joined host got the job with.
    """
    close_old_connections()
    name = identity.current().name
    try:
        return _claim(trajectory_id, name, ticket)
    except Worker.DoesNotExist:  # its first heartbeat is still to come
        worker_row.beat()
        return _claim(trajectory_id, name, ticket)
