"""Knobs of the `qemu` provider: virtual machines on this machine."""

from __future__ import annotations

from training.contracts.config.section import Section, knob

SNAPSHOT_MEMBERS = "Of each group, so many trajectories keep a snapshot before every turn to branch from."


class QemuConfig(Section):
    """Virtual machines, cloned from a paused template."""

    image: str = knob(
        "debian-desk", "Base image, as built by `make guest-image`.", pattern=r"^[\w][\w.-]{0,63}$"
    )
    memory_mb: int = knob(1024, "Memory of one machine.", unit="MiB", ge=256, le=65536)
    vcpus: int = knob(1, "Processors of one machine; without KVM one is best.", ge=1, le=32)
    snapshot_members: int = knob(0, SNAPSHOT_MEMBERS, unit="trajectories", ge=0, le=64)
    task_templates: bool = knob(
        True,
        "Run a task's setup once and clone the result: all trajectories of a task start from identical bits.",
    )
