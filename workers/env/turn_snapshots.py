"""A rollout's part in branches: snapshots before its turns, and a start from another trajectory's snapshot.

Snapshots are taken of as many members of each group as the config says, and of every running trajectory for
which a person switched them on. One that fails for want of space is recorded and does without; a desktop that
is lost by it is lost.
"""

import logging
import time

from webapp.worker_door import snapshots as calls
from webapp.worker_door.assignments import Assignment
from workers import identity
from workers.desktops.contract import EnvError, ErrorKind
from workers.environments.contract import Branchable
from workers.environments.registry import Environment
from workers.reports.current import reports

log = logging.getLogger(__name__)


class SnapshotLost(Exception):
    """Raised when a branch cannot start because its snapshot is gone; no other desktop has it."""


class TurnSnapshots:
    """Takes the snapshots of one trajectory."""

    def __init__(self, assignment: Assignment, environment: Environment) -> None:
        self._row = assignment.row
        self._environment = environment if isinstance(environment, Branchable) else None
        machines = assignment.config.desktops.machines
        self._num_members = machines.snapshot_members if machines else 0
        branch = assignment.branch
        self._branch_turn = len(branch.turns) if branch else None
        """A branch needs none before its first turn: its parent's stands for it."""

    def take(self, index: int) -> float:
        """Save the desktop before turn `index` if that is wanted; seconds that it took."""
        if self._environment is None or index == self._branch_turn or not self._is_wanted():
            return 0.0
        started = time.monotonic()
        try:
            kept = self._environment.snapshot(f"trajectory {self._row.pk}, turn {index + 1}")
        except EnvError as error:
            if error.kind is ErrorKind.INFRA:
                raise
            log.warning("trajectory %s, turn %s: no snapshot: %s", self._row.pk, index + 1, error)
            reports().report(calls.record_snapshot_problem, self._row.pk, str(error))
            return time.monotonic() - started
        took_s = time.monotonic() - started
        reports().report(
            calls.record_snapshot,
            self._row.pk,
            index,
            identity.current().host,
            kept.name,
            kept.size_mb,
            kept.pause_s,
            round(took_s, 3),
        )
        return took_s

    def _is_wanted(self) -> bool:
        assert self._environment is not None
        if not self._environment.can_be_saved:
            return False
        if self._row.member < self._num_members:
            return True
        return reports().trajectory_now(self._row.pk).wants_snapshots


def wake_from(environment: Environment, snapshot: str) -> None:
    """Let the desktop go on where the parent's snapshot was taken. Raises SnapshotLost, EnvError."""
    if not snapshot:
        raise SnapshotLost("the snapshot of this branch was deleted with the trajectory that it was kept of")
    if not isinstance(environment, Branchable):
        raise SnapshotLost("desktops of this provider cannot wake up from snapshots")
    try:
        environment.wake(snapshot)
    except EnvError as error:
        if not (error.kind is ErrorKind.TASK and error.permanent):
            raise
        reports().report(calls.record_lost_snapshot, identity.current().host, snapshot)
        raise SnapshotLost(str(error)) from error
