"""What a desk host says of itself and its desktops, as its mirror tells it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from webapp.fleet.reported_values import HostValues


@dataclass(frozen=True, slots=True, kw_only=True)
class DesktopFigures:
    """What changes all the time of a desktop, and is written now and then."""

    last_reset_s: float
    lease_until: datetime | None
    cpu_percent: float
    memory_mb: float
    num_processes: int
    born_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DesktopState:
    """One desktop as its host tells it; the fields are those of `models.Desktop`."""

    name: str
    provider: str
    phase: str
    boot_phase: str
    generation: int
    width: int
    height: int
    holder: str
    num_resets: int
    num_rebuilds: int
    num_failures: int
    reason: str
    quarantine: str
    log: str
    has_vnc: bool
    figures: DesktopFigures = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedBoot:
    """A desktop that did not come up."""

    number: int
    at: datetime
    desktop_name: str
    provider: str
    boot_phase: str
    reason: str
    log: str
    screenshot: bytes
    """PNG or JPEG; empty without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostState:
    """All that a report says of a host."""

    values: HostValues
    desktops: Sequence[DesktopState]
    failures: Sequence[FailedBoot]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostChanges:
    """What differs from what the mirror reported last."""

    values: HostValues
    """Those that differ."""
    desktops: Sequence[DesktopState]
    """That changed for people."""
    figures: dict[str, DesktopFigures]
    """Of others, by name."""
    gone: Sequence[str]
    """Names of desktops that there are no more."""
