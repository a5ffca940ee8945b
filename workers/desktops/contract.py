"""What every desktop provider offers the desk host, and the errors that desktops raise.

Life of a provider's desktop:  create -> reset* -> destroy; `wait_dead` returns when it dies in between.
A provider is one folder with a class behind `Provider`, its knobs and row in
`training.contracts.config.providers`, and its factory in `workers.desktops.registry`.
"""

from enum import StrEnum
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field

from training.contracts.config import ProviderInfo


class ErrorKind(StrEnum):
    """Who is to blame, which decides what the caller does."""

    INFRA = "infra"
    """The host or the desktop broke: the trajectory is errored and re-run elsewhere."""
    GUEST = "guest"
    """A program inside the desktop failed or did not answer; the desktop lives."""
    QUOTA = "quota"
    """No desktop, memory or lease is left: wait and try again."""
    TASK = "task"
    """The request itself is wrong (off-screen click, unknown key, bad spec)."""


class EnvError(Exception):
    """Raised when a desktop cannot do what was asked. `permanent` = trying again cannot help."""

    def __init__(self, message: str, *, kind: ErrorKind = ErrorKind.INFRA, permanent: bool = False) -> None:
        super().__init__(message)
        self.kind = ErrorKind(kind)
        self.permanent = permanent


class NotClean(EnvError):
    """Raised when a desktop still shows traces after a reset; the desk host rebuilds it."""


class BootPhase(StrEnum):
    """How far a starting machine has come; each has a time limit of its own."""

    CREATING = "creating"
    """Its files are made and its process is started."""
    BOOTING = "booting"
    """Firmware, kernel and services, until the agent inside answers."""
    AGENT_UP = "agent_up"
    """The agent answers; the session of its user is still coming."""
    LOGGED_IN = "logged_in"
    """The session stands; the screen has yet to come to rest."""
    READY = "ready"


class BootFailed(EnvError):
    """Raised when a machine did not come up; carries what a person needs to see why."""

    def __init__(self, message: str, *, boot_phase: str, log: str = "", screenshot: str = "") -> None:
        super().__init__(message)
        self.boot_phase = boot_phase
        self.log = log
        """End of its console log."""
        self.screenshot = screenshot
        """Path of the last picture of its screen, kept by the provider; "" without one."""


class Health(BaseModel):
    """Whether a provider can work here, and what a person would do about it if not."""

    provider: str
    usable: bool
    mode: str = ""
    """How it would run, e.g. "sandbox, Xvnc"."""
    reasons: list[str] = Field(default_factory=list)
    """What is missing or degraded, one sentence each."""
    remedies: list[str] = Field(default_factory=list)
    """What to do about each reason, same order."""


class DesktopSpec(BaseModel):
    """What kind of desktop is wanted. Two equal specs are interchangeable."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    width: int = Field(512, ge=160, le=1920, description="Screen width, pixels")
    height: int = Field(384, ge=120, le=1080, description="Screen height, pixels")
    home_mb: int = Field(64, ge=4, le=4096, description="Space for HOME, MiB; /tmp gets as much")
    memory_mb: int = Field(
        768, ge=128, le=65536, description="Memory of all its processes, or of the virtual machine, MiB"
    )
    accessibility: bool = Field(
        False, description="Programs publish their widgets (x11; virtual machines as their image says)"
    )
    max_processes: int = Field(256, ge=32, le=4096, description="Processes and threads in the desktop")
    background: str = Field("#2f5d7c", pattern="^#[0-9a-fA-F]{6}$", description="Colour of the empty desktop")
    image: str = Field("", description="Base image of a virtual machine; empty = none, or the provider's own")
    vcpus: int = Field(1, ge=1, le=32, description="Processors of a virtual machine")


class Endpoints(BaseModel):
    """Where the outside reaches a desktop from the desk host's machine: unix socket paths, or HOST:PORT."""

    console: str = ""
    """Which row of `workers.desktops.registry.CONSOLES` shows and drives it."""
    display: str = ""
    """X11 socket."""
    agent: str = ""
    """HTTP: the in-desktop agent."""
    agent_protocol: str = "http"
    """Which row of `workers.desktops.registry.AGENTS` speaks it."""
    qmp: str = ""
    """A virtual machine's monitor: its screen, keyboard and pointer."""
    vnc: str = ""
    """RFB over a unix socket; "" when the X server has no VNC."""
    cpu_account: str = ""
    """File with the CPU nanoseconds of the whole desktop; "" where control groups are not available."""
    display_wait_s: float = 0.0
    """How long its agent may wait for the display; 0 = as it would by itself."""
    home: str = "/home/user"
    """HOME as programs in the desktop see it."""


class Usage(BaseModel):
    """Resources of one desktop, all its processes together."""

    processes: int = 0
    rss_mb: float = 0.0
    cpu_s: float = 0.0
    """CPU seconds since this generation was created, ended processes included where cgroups allow."""


class ResetReport(BaseModel):
    """What a reset found and did."""

    killed: int = 0
    """Processes ended."""
    removed: int = 0
    """Files and folders removed."""
    wall_s: float = 0.0
    rebuilt: bool = False
    reason: str = ""
    """Why it was rebuilt, else ""."""


class ProviderDesktop(Protocol):
    """One living desktop, owned by the desk host."""

    pid: int
    endpoints: Endpoints

    @property
    def cgroups(self) -> list[str]:
        """Folders of its control groups, for the host's records."""

    @property
    def memory_limit_mb(self) -> float:
        """More private memory than this, and the host ends it."""

    async def reset(self) -> ResetReport:
        """Back to the state after create. Raises NotClean or EnvError: rebuild it."""

    async def destroy(self) -> None:
        """End every process and remove every file of it. Idempotent."""

    async def wait_dead(self) -> str:
        """Return why it died, with its last log lines."""

    def usage(self) -> Usage:
        """Current resources; zeros when it is gone."""

    def private_mb(self) -> float:
        """Memory without counting shared pages twice, MiB; dearer than `usage`."""


class Provider(Protocol):
    """Makes desktops of one technology."""

    info: ProviderInfo

    def probe(self) -> Health:
        """Whether it works on this machine; cheap enough to call at start and on a health page."""

    async def create(self, desktop_id: str, spec: DesktopSpec, folder: Path) -> ProviderDesktop:
        """Start one in `folder` (made by it, private). Raises EnvError, leaving nothing behind."""

    def boot_phase(self, desktop_id: str) -> str:
        """What `create` of this desktop is doing now, for people; "" when there is nothing to tell."""
