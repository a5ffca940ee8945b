"""Desktops that may not be had at once, or that others rent out: parking, keys, clusters in use."""

from __future__ import annotations

from webapp.worker_door import parking as door
from workers.door.through import through
from workers.env.reporting.claims import ClaimedTrajectory
from workers.environments.contract import AtCapacity

gateways_in_use = through(door.gateways_in_use)
end_remote_desktop = through(door.end_remote_desktop)
_unended_trajectories = through(door.unended_trajectories)
_park = through(door.park)
_unpark = through(door.unpark)


def key_of(row: ClaimedTrajectory) -> str:
    """The trajectory's name towards a service that lends desktops, the same at every attempt."""
    return _key(row.pk)


def trajectory_keys() -> set[str]:
    """Keys of all trajectories that have not ended."""
    return {_key(pk) for pk in _unended_trajectories()}


def park(row: ClaimedTrajectory, error: AtCapacity, limit_s: float) -> None:
    """No desktop is free: the trajectory waits without a slot, `limit_s` at most; 0 = without limit."""
    _park(row.pk, str(error), error.position, error.wait_s, error.retry_after_s, limit_s)


def unpark(row: ClaimedTrajectory) -> bool:
    """There is a desktop for a trajectory that may have been parked; False when it was cancelled."""
    return not row.is_parked or _unpark(row.pk)


def _key(pk: int) -> str:
    return f"trajectory-{pk}"
