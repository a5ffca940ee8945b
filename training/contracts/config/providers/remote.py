"""Provider `remote`: desktops of env servers elsewhere. A token never stands here, only its secret's name."""

from collections.abc import Iterator

from pydantic import field_validator

from training.contracts.config.providers.checked_url import checked_url
from training.contracts.config.providers.provider_info import ProviderInfo, ProviderSection, System
from training.contracts.config.section import Problem, knob
from training.contracts.config.storable_values import PathText

OTHER_SYSTEMS: dict[str, System] = {"windows": "windows", "macos": "macos", "android": "android"}
"""By `os_type` in small letters; all others are Linux."""


class RemoteConfig(ProviderSection):
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
    os_type: str = knob("Ubuntu", "Guest system that the server is asked for, also Windows, macOS, Android.")
    ca_file: PathText = knob("", "PEM file of an own certificate authority; empty = the system's.")

    @field_validator("urls")
    @classmethod
    def _check_urls(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        checked = tuple(checked_url(url, ("http", "https")) for url in urls)
        if len(set(checked)) < len(checked):
            raise ValueError("a URL stands there twice; raise slots_per_url instead")
        return checked

    def problems(self, num_desktops: int) -> Iterator[Problem]:
        places = len(self.urls) * self.slots_per_url
        if not self.urls:
            yield "desktops.remote.urls", "the remote provider needs at least one URL"
        elif num_desktops > places:
            slots = f"{len(self.urls)} in desktops.remote.urls, {self.slots_per_url} slots_per_url"
            text = f"the remote servers offer {places} desktops: {slots}"
            yield "desktops.num_desktops", text

    @property
    def system(self) -> System:
        return OTHER_SYSTEMS.get(self.os_type.lower(), "linux")

    def addresses(self) -> dict[str, tuple[str, ...]]:
        return {"urls": self.urls}

    def secrets(self) -> dict[str, str]:
        return {"token_secret": self.token_secret}

    @property
    def no_screen_reason(self) -> str:
        return (
            "Environments of provider remote answer with screenshots and take actions; the protocol has no "
            "live screen, so people cannot use one by hand."
        )


REMOTE = ProviderInfo(
    name="remote",
    title="Remote",
    needs_redis=True,
)
