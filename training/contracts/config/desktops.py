"""The section of the config that says where episodes run, and the table of providers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from training.contracts.config.providers.desk_host_registry import DEFAULT_PROVIDER, DESK_HOST
from training.contracts.config.providers.gateway import GATEWAY, GatewayConfig
from training.contracts.config.providers.machine import MachineConfig
from training.contracts.config.providers.osworld import OSWORLD, OsworldConfig
from training.contracts.config.providers.provider_info import NO_KNOBS, ProviderInfo, ProviderSection
from training.contracts.config.providers.qemu import QemuConfig
from training.contracts.config.providers.remote import REMOTE, RemoteConfig
from training.contracts.config.providers.windows import WindowsConfig
from training.contracts.config.providers.x11 import X11Config
from training.contracts.config.section import Section, knob

PROVIDERS: dict[str, ProviderInfo] = DESK_HOST | {info.name: info for info in (REMOTE, GATEWAY, OSWORLD)}
"""Value of `desktops.provider` -> its row."""

if TYPE_CHECKING:
    ProviderName = str
else:
    ProviderName = Literal[tuple(PROVIDERS)]  # the table is the only list of names


class DesktopConfig(Section):
    """The machines that episodes run on."""

    provider: ProviderName = knob(DEFAULT_PROVIDER, "Where desktops come from.")
    num_desktops: int = knob(8, "Trajectories in flight at most.", unit="desktops", ge=1, le=512)
    max_turns: int = knob(8, "Turn limit (a task's own limit wins).", unit="turns", ge=1, le=200)
    turn_timeout_s: float = knob(
        30.0, "Limit for one completion, without waiting for the engine.", unit="s", gt=0
    )
    trajectory_timeout_s: float = knob(
        120.0, "Limit for a whole trajectory, without waiting for the engine.", unit="s", gt=0
    )
    retries: int = knob(2, "Retries after an error, before the place stays empty.", ge=0, le=10)
    x11: X11Config = X11Config()
    qemu: QemuConfig = QemuConfig()
    windows: WindowsConfig = WindowsConfig()
    remote: RemoteConfig = RemoteConfig()
    gateway: GatewayConfig = GatewayConfig()
    osworld: OsworldConfig = OsworldConfig()

    @property
    def provider_info(self) -> ProviderInfo:
        """The chosen provider's row."""
        return PROVIDERS[self.provider]

    @property
    def provider_section(self) -> ProviderSection:
        """The chosen provider's knobs."""
        return self.section_of(self.provider)

    @property
    def machines(self) -> MachineConfig | None:
        """The same when it clones virtual machines, else None."""
        section = self.provider_section
        return section if isinstance(section, MachineConfig) else None

    def section_of(self, provider: str) -> ProviderSection:
        """A provider's knobs; of one without any, an empty section."""
        section: ProviderSection = getattr(self, provider, NO_KNOBS)
        return section
