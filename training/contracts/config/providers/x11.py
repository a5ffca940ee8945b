"""Provider `x11`: desktops that are processes of this machine."""

from typing import Any, Literal

from training.contracts.config.providers.provider_info import Capability, ProviderInfo, ProviderSection
from training.contracts.config.section import knob

OFFICE = "office"
OFFICE_FIELDS = {"image": OFFICE, "memory_mb": 1536, "home_mb": 128}
"""What a desktop with LibreOffice and Chromium takes; MiB."""


class X11Config(ProviderSection):
    """Desktops with the programs of their own machine."""

    image: Literal["desk", "office"] = knob(
        "desk", "Programs: desk = those of `make setup`; office = also LibreOffice and Chromium."
    )

    def desktop_fields(self) -> dict[str, Any]:
        return OFFICE_FIELDS if self.image == OFFICE else {}


X11 = ProviderInfo(
    name="x11",
    title="X11",
    desktop_title="X11 desktop",
    capabilities=frozenset({Capability.RESET_IN_PLACE, Capability.ACCESSIBILITY}),
    is_on_desk_host=True,
    programs=(
        "Xvnc",
        "openbox",
        "mousepad",
        "galculator",
        "xterm",
        "zenity",
        "pcmanfm",
        "wmctrl",
        "xdotool",
    ),
    isolation_check="workers.desktops.x11.sandbox",
    runs_desktop_env=True,
    proof_stall_s=60,
    proof_trajectory_s=120.0,
)
