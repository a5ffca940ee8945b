"""Snapshots that a machine keeps before turns, for branches."""

from webapp.trajectories.services.snapshots import record_lost_snapshot as record_lost_snapshot
from webapp.trajectories.services.snapshots import record_snapshot as record_snapshot
from webapp.trajectories.services.snapshots import record_snapshot_problem as record_snapshot_problem
from webapp.trajectories.services.snapshots import unknown_snapshots as unknown_snapshots
