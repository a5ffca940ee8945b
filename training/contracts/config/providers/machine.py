"""What the sections of all providers of virtual machines have in common."""

from typing import Any

from training.contracts.config.providers.provider_info import ProviderSection
from training.contracts.config.section import knob

MACHINE_PROGRAMS = ("qemu-system-x86_64", "qemu-img")
MACHINE_PACKAGES = "qemu-system-x86 qemu-utils"


class MachineConfig(ProviderSection):
    """Virtual machines, cloned from a paused template."""

    image: str = knob("", "Name of the base image.")
    memory_mb: int = knob(1024, "Memory of one machine.", unit="MiB", ge=256, le=65536)
    vcpus: int = knob(1, "Processors of one machine; without KVM one is best.", ge=1, le=32)
    snapshot_members: int = knob(
        0,
        "Trajectories of each group that keep a snapshot before every turn to branch from.",
        unit="trajectories",
        ge=0,
        le=64,
    )
    task_templates: bool = knob(
        True,
        "Run a task's setup once and clone the result: all trajectories of a task start from identical bits.",
    )

    def desktop_fields(self) -> dict[str, Any]:
        return {"image": self.image, "memory_mb": self.memory_mb, "vcpus": self.vcpus}
