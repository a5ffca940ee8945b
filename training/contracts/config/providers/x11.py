"""Provider `x11`: desktops that are processes of this machine. It has no knobs."""

from __future__ import annotations

from training.contracts.config.providers.provider_info import Capability, ProviderInfo

X11 = ProviderInfo(
    name="x11",
    title="X11",
    desktop_title="X11 desktop",
    capabilities=frozenset({Capability.RESET_IN_PLACE, Capability.ACCESSIBILITY}),
    is_on_desk_host=True,
    proof_stall_s=60,
    proof_trajectory_s=120.0,
)
