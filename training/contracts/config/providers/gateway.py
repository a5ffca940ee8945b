"""Provider `gateway`: rented sandboxes. A token never stands here, only its secret's name."""

from collections.abc import Iterator
from typing import Literal

from pydantic import field_validator

from training.contracts.config.providers.checked_url import checked_url
from training.contracts.config.providers.provider_info import ProviderInfo, ProviderSection
from training.contracts.config.section import Problem, knob
from training.contracts.config.storable_values import PathText

VENDORS = ("http", "osworld-guest")
"""Those that need no adapter of anyone's."""


class GatewayConfig(ProviderSection):
    """A cluster that rents sandboxes over HTTPS; above its quota trajectories are parked, not failed."""

    vendor: str = knob(
        "http",
        "http = the documented HTTP protocol, osworld-guest = OSWorld's in-guest server behind such a "
        "gateway, or PACKAGE.MODULE:FACTORY of a vendor's SDK adapter.",
        pattern=rf"^({'|'.join(VENDORS)}|[A-Za-z_][\w.]*:[A-Za-z_]\w*)$",
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
    ca_file: PathText = knob("", "PEM file of an own certificate authority; empty = the system's.")
    screenshot_format: Literal["any", "png"] = knob(
        "any", "png refuses lossy pictures, whose pixels differ although the screen does not."
    )

    @field_validator("endpoint")
    @classmethod
    def _check_endpoint(cls, endpoint: str) -> str:
        return checked_url(endpoint, ("https",)) if endpoint else endpoint

    def problems(self, num_desktops: int) -> Iterator[Problem]:
        if self.vendor in VENDORS and not self.endpoint:
            yield "desktops.gateway.endpoint", "the gateway provider needs the cluster's URL"
        if self.vendor in VENDORS and not self.token_secret:
            yield "desktops.gateway.token_secret", "name the secret that holds the cluster's token"

    def addresses(self) -> dict[str, tuple[str, ...]]:
        return {"endpoint": (self.endpoint,)} if self.endpoint else {}

    def secrets(self) -> dict[str, str]:
        return {"token_secret": self.token_secret}

    @property
    def parking_limit_s(self) -> float:
        return self.max_parked_s

    @property
    def no_screen_reason(self) -> str:
        return (
            "Sandboxes of provider gateway answer with screenshots and take actions; sessions have no "
            "live screen, so people cannot use one by hand."
        )


GATEWAY = ProviderInfo(
    name="gateway",
    title="Gateway",
)
