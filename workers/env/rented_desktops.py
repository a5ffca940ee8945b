"""Desktops that others rent out: the keys of those that serve a trajectory, and clusters in use."""

from training.contracts.config import GatewayConfig
from webapp.worker_door import parking
from workers.reports.current import reports


def key_of(trajectory_id: int) -> str:
    """The trajectory's name towards a service that lends desktops, the same at every attempt."""
    return f"trajectory-{trajectory_id}"


def trajectory_keys() -> set[str]:
    """Keys of all trajectories that have not ended."""
    return {key_of(pk) for pk in reports().request(parking.unended_trajectories)}


def gateways_in_use() -> list[GatewayConfig]:
    """Clusters whose sandboxes may be ours."""
    return reports().request(parking.gateways_in_use)
