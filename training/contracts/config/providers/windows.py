"""Provider `windows`: virtual machines from the user's own Windows image."""

from training.contracts.config.providers.machine import MACHINE_PACKAGES, MACHINE_PROGRAMS, MachineConfig
from training.contracts.config.providers.provider_info import Capability, ProviderInfo, System
from training.contracts.config.section import knob


class WindowsConfig(MachineConfig):
    """Windows machines; docs/windows.md says how an image is prepared and registered."""

    image: str = knob("windows", "Name of a registered Windows image.", pattern=r"^[A-Za-z0-9_-]+$")
    memory_mb: int = knob(
        4096, "Memory of one machine; the image may ask for more.", unit="MiB", ge=1024, le=65536
    )
    vcpus: int = knob(2, "Processors of one machine.", ge=1, le=32)

    @property
    def system(self) -> System:
        return "windows"


WINDOWS = ProviderInfo(
    name="windows",
    title="Windows",
    desktop_title="Windows machine",
    capabilities=frozenset({Capability.SNAPSHOT}),
    is_on_desk_host=True,
    is_virtual_machine=True,
    programs=MACHINE_PROGRAMS,
    packages=MACHINE_PACKAGES,
    image_source="docs/windows.md",
    proof_stall_s=1800,
)
