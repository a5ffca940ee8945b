"""What the desk host tells about desktops and leases; JSON by pydantic over its socket.

starting -> ready -> leased -> resetting -> leased | ready
every phase -> dead (noticed) -> starting (rebuilt) or gone
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, Field

from workers.providers.base import DesktopSpec, Endpoints, Health, ResetReport, Usage


class Phase(StrEnum):
    """Where a desktop stands."""

    STARTING = "starting"
    READY = "ready"
    """Clean, without a lease."""
    LEASED = "leased"
    RESETTING = "resetting"
    DEAD = "dead"
    """It ended by itself; the next reset under its lease rebuilds it."""
    GONE = "gone"
    """Destroyed on request."""


PHASE_TRANSITIONS: dict[Phase, set[Phase]] = {
    Phase.STARTING: {Phase.READY, Phase.LEASED, Phase.DEAD, Phase.GONE},
    Phase.READY: {Phase.LEASED, Phase.RESETTING, Phase.DEAD, Phase.GONE},
    Phase.LEASED: {Phase.RESETTING, Phase.STARTING, Phase.DEAD, Phase.GONE},
    Phase.RESETTING: {Phase.LEASED, Phase.READY, Phase.STARTING, Phase.DEAD, Phase.GONE},
    Phase.DEAD: {Phase.STARTING, Phase.GONE},
    Phase.GONE: set(),
}


class DesktopInfo(BaseModel):
    """How to reach a desktop."""

    desktop_id: str
    provider: str
    spec: DesktopSpec
    generation: int
    """Raised by every rebuild; the endpoints change with it."""
    endpoints: Endpoints


class Lease(BaseModel):
    """The time-limited exclusive right to a desktop."""

    lease_id: str
    holder: str
    ttl_s: float
    desktop: DesktopInfo


class ResetResult(BaseModel):
    """Answer to a reset."""

    desktop: DesktopInfo
    report: ResetReport


class DesktopStatus(BaseModel):
    """One row of the fleet list."""

    info: DesktopInfo
    phase: Phase
    reason: str = ""
    """Why it is dead, or why it was last rebuilt."""
    pid: int
    usage: Usage = Field(default_factory=Usage)
    resets: int = 0
    rebuilds: int = 0
    failures: int = 0
    age_s: float = 0.0
    """Seconds since this generation started."""
    lease_id: str = ""
    holder: str = ""
    lease_left_s: float = 0.0


class HostHealth(BaseModel):
    """The host as a whole."""

    pid: int
    uptime_s: float
    desktops: dict[Phase, int]
    max_desktops: int
    swept: int
    """Processes of an earlier host that were ended at start."""
    providers: list[Health]
