"""Provider `qemu`: Linux virtual machines on this machine."""

from training.contracts.config.providers.machine import MACHINE_PACKAGES, MACHINE_PROGRAMS, MachineConfig
from training.contracts.config.providers.provider_info import Capability, ProviderInfo
from training.contracts.config.section import knob


class QemuConfig(MachineConfig):
    """Virtual machines of a Linux image, cloned from a paused template."""

    image: str = knob(
        "debian-desk", "Base image, as built by `make guest-image`.", pattern=r"^[\w][\w.-]{0,63}$"
    )


QEMU = ProviderInfo(
    name="qemu",
    title="QEMU",
    desktop_title="Virtual machine",
    capabilities=frozenset({Capability.SNAPSHOT}),
    is_on_desk_host=True,
    is_virtual_machine=True,
    programs=MACHINE_PROGRAMS,
    packages=MACHINE_PACKAGES,
    runs_desktop_env=True,
    image_source="make guest-image",
    proof_stall_s=900,
)
