"""Sections about desktops: how episodes use them, and one section per provider that has knobs.

Tokens never stand here: a knob names a secret of the secret store.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal
from urllib.parse import urlsplit

from pydantic import field_validator

from training.contracts.config.section import Problem, Section, knob

OWN_DESKTOPS = frozenset({"x11", "qemu"})
"""Values of `machines` that the desk host of this machine provides."""


class MachineConfig(Section):
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


class QemuConfig(MachineConfig):
    """Virtual machines of a Linux image, cloned from a paused template."""

    image: str = knob(
        "debian-desk", "Base image, as built by `make guest-image`.", pattern=r"^[\w][\w.-]{0,63}$"
    )


class WindowsConfig(MachineConfig):
    """Windows machines; docs/windows.md says how an image is prepared and registered."""

    image: str = knob("windows", "Name of a registered Windows image.", pattern=r"^[A-Za-z0-9_-]+$")
    memory_mb: int = knob(
        4096, "Memory of one machine; the image may ask for more.", unit="MiB", ge=1024, le=65536
    )
    vcpus: int = knob(2, "Processors of one machine.", ge=1, le=32)


class OsworldConfig(Section):
    """xlang-ai's DesktopEnv sets tasks up and scores them; install it by `make osworld-env`."""

    machines: Literal[
        "x11", "qemu", "docker", "vmware", "virtualbox", "aws", "azure", "aliyun", "volcengine"
    ] = knob("x11", "What DesktopEnv drives: our desktops (x11, qemu), or one of its own providers.")
    accessibility: bool = knob(
        False,
        "x11: programs publish their widgets, for evaluators of the accessibility tree; such a desktop is "
        "rebuilt for every trajectory (0.5 s).",
    )
    python: str = knob("", "Python of OSWorld's environment; empty = .venv-osworld beside the product.")
    pause_s: float = knob(
        0.3,
        "Pause after an action before the screen is looked at; OSWorld's own is 2.",
        unit="s",
        ge=0,
        le=30,
    )
    settle_s: float = knob(
        2.0, "Then wait at most this long for two equal screens; 0 = do not.", unit="s", ge=0, le=30
    )
    reset_timeout_s: float = knob(
        300.0, "Limit for reset and set-up; docker takes about 90 s.", unit="s", gt=0, le=3600
    )
    act_timeout_s: float = knob(120.0, "Limit for one action.", unit="s", gt=0, le=3600)
    evaluate_timeout_s: float = knob(
        300.0, "Limit for post-processing and evaluator.", unit="s", gt=0, le=3600
    )
    strict_setup: bool = knob(
        True, "Fail a task when the desktop refuses a set-up step; DesktopEnv itself only logs most refusals."
    )
    allow_host_code: bool = knob(
        False, "Allow the two evaluators of OSWorld that run what the agent wrote on the env worker itself."
    )
    downloads: str = knob(
        "", "Folder of files fetched by tasks, as TASK_ID/NAME; filled beforehand it makes tasks run offline."
    )
    checkout: str = knob("", "OSWorld checkout that relative paths of upload_file are in.")
    password_secret: str = knob(
        "", "Name of the secret with the desktop user's password; empty = OSWorld's default."
    )
    os_type: Literal["Ubuntu", "Windows"] = knob(
        "Ubuntu", "System in the machines of OSWorld's own providers."
    )
    path_to_vm: str = knob("", "Image or machine of OSWorld's own providers; empty = theirs.")
    region: str = knob("", "Region of OSWorld's cloud providers.")
    snapshot_name: str = knob("init_state", "Snapshot that OSWorld's own providers go back to.")
    headless: bool = knob(True, "OSWorld's own providers: start machines without a window.")
    pass_variables: tuple[str, ...] = knob(
        (), "Environment variables that OSWorld's own providers need, by name, e.g. AWS_REGION."
    )


class RemoteConfig(Section):
    """Env servers by URL: ours, or any of Slime-OSWorld's HTTP protocol."""

    urls: tuple[str, ...] = knob((), "Base URLs of the env servers, e.g. http://10.0.0.5:8100.")
    token_secret: str = knob(
        "", "Name of the secret with the bearer token; empty = the servers ask for none."
    )
    slots_per_url: int = knob(
        1,
        "Trajectories at once on one URL, over all experiments. Slime-OSWorld's own server does one thing "
        "at a time and closes running episodes above its limit: leave 1 there.",
        unit="desktops",
        ge=1,
        le=256,
    )
    request_timeout_s: float = knob(120.0, "Limit for one request.", unit="s", gt=0, le=3600)
    reset_timeout_s: float = knob(600.0, "Limit for a reset with its task set up.", unit="s", gt=0, le=7200)
    pause_s: float = knob(
        2.0, "Pause after an action that the server is asked for; ours waits until the screen rests instead.",
        unit="s", ge=0, le=60,
    )  # fmt: skip
    provider_name: str = knob("docker", "What Slime-OSWorld's server makes its desktops with.")
    os_type: str = knob("Ubuntu", "Guest system that the server is asked for.")
    ca_file: str = knob("", "PEM file of an own certificate authority; empty = the system's.")

    @field_validator("urls")
    @classmethod
    def _check_urls(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        checked = tuple(checked_url(url, ("http", "https")) for url in urls)
        if len(set(checked)) < len(checked):
            raise ValueError("a URL stands there twice; raise slots_per_url instead")
        return checked


class GatewayConfig(Section):
    """A cluster that rents sandboxes over HTTPS; above its quota trajectories are parked, not failed."""

    vendor: str = knob(
        "http",
        "http = the documented HTTP protocol, or PACKAGE.MODULE:FACTORY of a vendor's SDK adapter.",
        pattern=r"^(http|[A-Za-z_][\w.]*:[A-Za-z_]\w*)$",
    )
    endpoint: str = knob("", "Base URL of the cluster, https://...")
    token_secret: str = knob("", "Name of the secret with the token.")
    owner: str = knob(
        "",
        "Label of our sandboxes; empty = one derived from this installation. What carries it and serves no "
        "trajectory is deleted, so no two installations may use the same.",
        pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]{0,62})?$",
    )
    image: str = knob("", "Which image the sandboxes start from; empty = the cluster's default.")
    session_header: str = knob("x-session-id", "Header with a sandbox's session.", pattern=r"^[A-Za-z0-9-]+$")
    token_header: str = knob("x-secret-token", "Header with the token.", pattern=r"^[A-Za-z0-9-]+$")
    request_timeout_s: float = knob(60.0, "Limit for one request.", unit="s", gt=0, le=3600)
    create_timeout_s: float = knob(300.0, "Limit for starting a sandbox.", unit="s", gt=0, le=3600)
    max_attempts: int = knob(5, "Tries of a request that the cluster fails with 5xx.", ge=1, le=20)
    max_parked_s: float = knob(
        0.0, "A trajectory parked for longer is errored; 0 = it waits as long as it takes.", unit="s", ge=0
    )
    ca_file: str = knob("", "PEM file of an own certificate authority; empty = the system's.")
    screenshot_format: Literal["any", "png"] = knob(
        "any", "png refuses lossy pictures, whose pixels differ although the screen does not."
    )

    @field_validator("endpoint")
    @classmethod
    def _check_endpoint(cls, endpoint: str) -> str:
        return checked_url(endpoint, ("https",)) if endpoint else endpoint


class DesktopConfig(Section):
    """The machines that episodes run on."""

    provider: Literal["x11", "qemu", "windows", "remote", "gateway", "osworld"] = knob(
        "x11", "Where desktops come from."
    )
    num_desktops: int = knob(8, "Trajectories in flight at most.", unit="desktops", ge=1, le=512)
    max_turns: int = knob(8, "Turns before a trajectory is truncated.", unit="turns", ge=1, le=200)
    turn_timeout_s: float = knob(30.0, "Limit for one completion and action.", unit="s", gt=0)
    trajectory_timeout_s: float = knob(120.0, "Limit for a whole trajectory.", unit="s", gt=0)
    retries: int = knob(2, "Re-runs of an errored trajectory before its place stays empty.", ge=0, le=10)
    qemu: QemuConfig = QemuConfig()
    windows: WindowsConfig = WindowsConfig()
    remote: RemoteConfig = RemoteConfig()
    gateway: GatewayConfig = GatewayConfig()
    osworld: OsworldConfig = OsworldConfig()

    def section_of(self, provider: str) -> Section | None:
        """The knobs of a provider; None for one without any."""
        section = getattr(self, provider, None)
        return section if isinstance(section, Section) else None

    @property
    def provider_section(self) -> Section | None:
        """The knobs of the chosen provider; None for x11, which has none."""
        return self.section_of(self.provider)

    @property
    def machines(self) -> MachineConfig | None:
        """The same when it clones virtual machines, else None."""
        section = self.provider_section
        return section if isinstance(section, MachineConfig) else None


def checked_url(url: str, schemes: tuple[str, ...]) -> str:
    """The URL without a final slash. Raises ValueError when it is none, or holds a secret."""
    parts = urlsplit(url)
    if parts.scheme not in schemes or not parts.hostname:
        raise ValueError(f"{url!r}: a URL with {' or '.join(schemes)} and a host is needed")
    if parts.username or parts.password or parts.path.startswith("/token/"):
        raise ValueError("a URL must not hold a token; put it into the secret store and name the secret")
    if parts.query or parts.fragment:
        raise ValueError(f"{url!r}: leave out what follows ? or #")
    return url.rstrip("/")


def provider_problems(desktops: DesktopConfig) -> Iterator[Problem]:
    """What the chosen provider lacks."""
    remote, gateway = desktops.remote, desktops.gateway
    if desktops.provider == "remote":
        capacity = len(remote.urls) * remote.slots_per_url
        if not remote.urls:
            yield "desktops.remote.urls", "the remote provider needs at least one URL"
        elif desktops.num_desktops > capacity:
            slots = f"{len(remote.urls)} URL(s) with {remote.slots_per_url} slot(s) each"
            yield "desktops.num_desktops", f"{slots} serve at most {capacity}"
    if desktops.provider == "gateway" and gateway.vendor == "http":
        if not gateway.endpoint:
            yield "desktops.gateway.endpoint", "the gateway provider needs the cluster's URL"
        if not gateway.token_secret:
            yield "desktops.gateway.token_secret", "name the secret that holds the cluster's token"
