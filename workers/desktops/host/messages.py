"""What the desk host answers about desktops and leases.

starting -> ready -> leased -> resetting -> leased | ready
every phase -> dead (noticed) -> starting (rebuilt) or gone
every phase -> quarantined (by an operator) -> resetting (released), starting (restarted) or gone
"""

from enum import StrEnum

from pydantic import BaseModel, Field

from workers.desktops.contract import DesktopSpec, Endpoints, Health, ResetReport, Usage


class Phase(StrEnum):
    """Where a desktop stands."""

    STARTING = "starting"
    READY = "ready"
    """Clean, without a lease."""
    LEASED = "leased"
    RESETTING = "resetting"
    DEAD = "dead"
    """It ended by itself; the next reset under its lease rebuilds it."""
    QUARANTINED = "quarantined"
    """An operator keeps it as it is, to look at: never leased, never cleaned."""
    GONE = "gone"
    """Destroyed on request."""


_ANY_TIME = {Phase.DEAD, Phase.QUARANTINED, Phase.GONE}
PHASE_TRANSITIONS: dict[Phase, set[Phase]] = {
    Phase.STARTING: _ANY_TIME | {Phase.READY, Phase.LEASED},
    Phase.READY: _ANY_TIME | {Phase.LEASED, Phase.RESETTING, Phase.STARTING},
    Phase.LEASED: _ANY_TIME | {Phase.RESETTING, Phase.STARTING},
    Phase.RESETTING: _ANY_TIME | {Phase.LEASED, Phase.READY, Phase.STARTING},
    Phase.DEAD: {Phase.STARTING, Phase.QUARANTINED, Phase.GONE},
    Phase.QUARANTINED: {Phase.STARTING, Phase.RESETTING, Phase.DEAD, Phase.GONE},
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
    """Another desktop than before when the lease was moved to one that was clean already."""
    report: ResetReport


class Prepared(BaseModel):
    """Answer to `prepare`."""

    desktop: DesktopInfo
    is_ready: bool
    """True: the task's setup is done on it; False: do it, then `keep`."""


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
    boot_phase: str = ""
    """How far it is while it starts, in its provider's words."""
    cpu_percent: float = 0.0
    """Of one core, between the last two looks."""
    last_reset_s: float = 0.0
    """Duration of its last reset; 0 before the first."""
    quarantine: str = ""
    """Why an operator keeps it."""
    log: str = ""
    """End of its console log while it is dead or quarantined."""


class BootFailure(BaseModel):
    """A desktop that did not start."""

    number: int
    """Counts up during the host's life."""
    at: float
    """Wall clock, seconds since the epoch."""
    desktop_id: str
    provider: str
    boot_phase: str = ""
    """How far it came, in the provider's words."""
    reason: str
    log: str = ""
    screenshot: str = ""
    """Path of the last picture of its screen on the host's machine; "" without one."""


class Leak(BaseModel):
    """Something of a desktop that no known desktop accounts for."""

    kind: str
    """process, folder, record or cgroup."""
    name: str
    detail: str = ""


class Machine(BaseModel):
    """Resources of the whole machine."""

    cores: int = 0
    cpu_percent: float = 0.0
    """0 to 100 over all cores, between the last two looks."""
    load: float = 0.0
    memory_mb: float = 0.0
    memory_used_mb: float = 0.0
    disk_mb: float = 0.0
    """Size of the file system that holds the state folder."""
    disk_free_mb: float = 0.0


class ResetTimes(BaseModel):
    """Resets of the last minute, rebuilds included."""

    count: int = 0
    p50_s: float = 0.0
    p99_s: float = 0.0


class PoolKind(BaseModel):
    """The pool's state of one kind of desktop."""

    provider: str
    width: int
    height: int
    leased: int
    ready: int
    coming: int
    """Booting or being cleaned, without a lease."""
    wanted: int
    """How many the pool wants free."""
    problem: str = ""
    """Why it does not build any just now."""


class HostHealth(BaseModel):
    """The host as a whole."""

    pid: int
    uptime_s: float
    desktops: dict[Phase, int]
    max_desktops: int
    swept: int
    """Processes of an earlier host that were ended at start."""
    providers: list[Health]
    is_draining: bool = False
    """An operator lets it run empty: nothing new is leased."""


class KeptSnapshot(BaseModel):
    """The saved state of a desktop at one moment."""

    name: str
    label: str
    """Which trajectory and turn, for people."""
    size_mb: float
    pause_s: float
    """How long the desktop stood still for it."""
    took_s: float
    """Until it was finished; the desktop went on meanwhile."""
    created_at: float
    """Wall clock, seconds since the epoch."""


class SnapshotUse(BaseModel):
    """What snapshots take of a host, and how much they may."""

    count: int = 0
    max_count: int = 0
    size_mb: float = 0.0
    max_mb: float = 0.0


class HostReport(BaseModel):
    """All that the fleet page shows of a host."""

    version: int
    """Raised by each change of a phase or lease; a watcher asks for what comes after it."""
    health: HostHealth
    machine: Machine
    desktops: list[DesktopStatus]
    resets: ResetTimes
    num_resets: int
    num_failures: int
    """Desktops that died, did not start or were not clean, since the host started."""
    failures: list[BootFailure]
    leaks: list[Leak]
    pool: list[PoolKind]
    snapshots: SnapshotUse = Field(default_factory=SnapshotUse)
