"""The table of providers: one file each, with its knobs and its row."""

from training.contracts.config.providers import gateway, osworld, qemu, remote, windows, x11
from training.contracts.config.providers.provider_info import (
    NO_KNOBS,
    Capability,
    ProviderInfo,
    ProviderSection,
)

PROVIDERS: dict[str, ProviderInfo] = {
    info.name: info for info in (x11.INFO, qemu.INFO, windows.INFO, remote.INFO, gateway.INFO, osworld.INFO)
}
"""Value of `desktops.provider` -> its row."""

__all__ = ["NO_KNOBS", "PROVIDERS", "Capability", "ProviderInfo", "ProviderSection"]
