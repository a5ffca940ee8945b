"""The desk host's providers: technologies of desktops on this machine, one row each."""

from training.contracts.config.providers.provider_info import ProviderInfo
from training.contracts.config.providers.qemu import QEMU
from training.contracts.config.providers.windows import WINDOWS
from training.contracts.config.providers.x11 import X11

DEFAULT_PROVIDER = X11.name
"""Needs no image and no virtual machine, so every machine has it."""
DESK_HOST: dict[str, ProviderInfo] = {info.name: info for info in (X11, QEMU, WINDOWS)}
"""Those that have a row in `workers.desktops.registry`, too."""
FOR_DESKTOP_ENV = tuple(name for name, info in DESK_HOST.items() if info.runs_desktop_env)
