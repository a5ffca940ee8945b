"""Knobs of provider `windows`: virtual machines from the user's own Windows image. Torch-free."""

from __future__ import annotations

from training.contracts.config.qemu import SNAPSHOT_MEMBERS
from training.contracts.config.section import Section, knob


class WindowsConfig(Section):
    """Windows machines; docs/windows.md says how an image is prepared and registered."""

    image: str = knob("windows", "Name of a registered Windows image.", pattern=r"^[A-Za-z0-9_-]+$")
    memory_mb: int = knob(
        4096, "Memory of one machine; the image may ask for more.", unit="MiB", ge=1024, le=65536
    )
    vcpus: int = knob(2, "Processors of one machine.", ge=1, le=32)
    snapshot_members: int = knob(0, SNAPSHOT_MEMBERS, unit="trajectories", ge=0, le=64)
    task_templates: bool = knob(
        True,
        "Run a task's setup once and clone the result: all trajectories of a task start from identical bits.",
    )
