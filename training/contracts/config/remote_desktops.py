"""Config of desktops that belong to somebody else: env servers and sandbox clusters. Torch-free.

Tokens never stand here: a knob names a secret of the secret store.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal
from urllib.parse import urlsplit

from pydantic import field_validator

from training.contracts.config.section import Section, knob


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


def fleet_problems(
    provider: str, num_desktops: int, remote: RemoteConfig, gateway: GatewayConfig
) -> Iterator[tuple[str, str]]:
    """(field path, message) of what the chosen provider lacks."""
    if provider == "remote":
        places = len(remote.urls) * remote.slots_per_url
        if not remote.urls:
            yield "desktops.remote.urls", "the remote provider needs at least one URL"
        elif num_desktops > places:
            text = (
                f"{len(remote.urls)} URL(s) with {remote.slots_per_url} slot(s) each serve at most {places}"
            )
            yield "desktops.num_desktops", text
    if provider == "gateway":
        if gateway.vendor == "http" and not gateway.endpoint:
            yield "desktops.gateway.endpoint", "the gateway provider needs the cluster's URL"
        if gateway.vendor == "http" and not gateway.token_secret:
            yield "desktops.gateway.token_secret", "name the secret that holds the cluster's token"
