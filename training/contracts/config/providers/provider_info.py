"""What the web application and the workers know of a provider without loading it."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from training.contracts.config.section import Problem, Section

System = Literal["linux", "windows", "macos", "android"]
"""What a desktop runs."""


class Capability(StrEnum):
    """What desktops of a provider can do beyond being driven."""

    RESET_IN_PLACE = "reset_in_place"
    """Cleaned without being replaced."""
    SNAPSHOT = "snapshot"
    """Saved while they run: task templates, snapshots before turns, branches."""
    ACCESSIBILITY = "accessibility"
    """Programs publish their widgets when the desktop is asked for that."""


class ProviderSection(Section):
    """Knobs of one provider, `desktops.NAME`, with what others may ask of any provider's knobs."""

    def problems(self, num_desktops: int) -> Iterator[Problem]:
        """(field path, message) of what is missing when this provider is chosen."""
        yield from ()

    def desktop_fields(self) -> dict[str, Any]:
        """Fields of `workers.desktops.contract.DesktopSpec` that these knobs decide."""
        return {}

    def addresses(self) -> dict[str, tuple[str, ...]]:
        """Knob -> URLs that it names, which the installation has to allow."""
        return {}

    def secrets(self) -> dict[str, str]:
        """Knob -> name of the secret that it names."""
        return {}

    @property
    def system(self) -> System:
        """What its desktops run."""
        return "linux"

    @property
    def machine_provider(self) -> str:
        """Provider of the desk host whose desktops this one drives; "" = none."""
        return ""

    @property
    def no_screen_reason(self) -> str:
        """Why people cannot watch or use the desktops, naming the provider; "" = they can."""
        return ""

    @property
    def parking_limit_s(self) -> float:
        """How long a trajectory may wait for a desktop before it is errored, seconds; 0 = no limit."""
        return 0.0


NO_KNOBS = ProviderSection()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderInfo:
    """One provider; its knobs, if any, are the section `desktops.NAME` of the config."""

    name: str
    title: str
    """Heading of its knobs in the launch form."""
    desktop_title: str = ""
    """One of its desktops, where people choose; "" = they cannot choose it by name."""
    capabilities: frozenset[Capability] = frozenset()
    is_on_desk_host: bool = False
    """The desk host makes its desktops: it has a row in `workers.desktops.registry`."""
    is_virtual_machine: bool = False
    """Guests are emulated where KVM is missing: what runs inside is slow, the monitor is not."""
    programs: tuple[str, ...] = ()
    """Without them none of its desktops starts."""
    packages: str = ""
    """What installs them, where `make setup` does not."""
    isolation_check: str = ""
    """Module that exits with 0 where its desktops are isolated on this machine; "" = they always are."""
    runs_desktop_env: bool = False
    """OSWorld's DesktopEnv can drive its desktops."""
    needs_redis: bool = False
    """Its desktops are counted in Redis, which a joined host does not reach."""
    image_source: str = ""
    """Where its disk images come from, for people; "" = it needs none."""
    proof_stall_s: int = 0
    """`verify_tasks` gives up after so long without a result, seconds (the first machine has to boot);
    0 = its tasks cannot be verified by the provider's name alone."""
    proof_trajectory_s: float = 600.0
    """Limit of one trajectory of `verify_tasks`, seconds."""

    def can(self, capability: Capability) -> bool:
        return capability in self.capabilities
