"""Environments: a desktop with a task on it, as an episode uses it; one row per provider."""

from collections.abc import Callable

from training.contracts.config import PROVIDERS
from workers.environments.contract import AtCapacity, Environment, EnvironmentRequest
from workers.environments.gateway.sandbox_environment import GatewayEnvironment
from workers.environments.local import LocalEnvironment
from workers.environments.osworld.environment import OsworldEnvironment
from workers.environments.remote.environment import RemoteEnvironment

__all__ = ["ENVIRONMENTS", "AtCapacity", "Environment", "EnvironmentRequest"]

ENVIRONMENTS: dict[str, Callable[[EnvironmentRequest], Environment]] = {
    **{info.name: LocalEnvironment.open for info in PROVIDERS.values() if info.is_on_desk_host},
    "remote": RemoteEnvironment.open,
    "gateway": GatewayEnvironment.open,
    "osworld": OsworldEnvironment,
}
"""Config `desktops.provider` -> opens an environment; raises EnvError."""
