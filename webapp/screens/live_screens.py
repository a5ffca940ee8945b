"""Which desktops have a live screen, and on which of them a demonstration can be recorded."""

from __future__ import annotations

from dataclasses import dataclass

from training.contracts.config import OWN_DESKTOPS, DesktopConfig
from webapp.fleet.models import Host

SCREENSHOTS_ONLY = {
    "remote": "Environments of provider remote answer with screenshots and take actions; the protocol has no "
    "live screen, so nobody can use one by hand.",
    "gateway": "Sandboxes of provider gateway answer with screenshots and take actions; sessions have no "
    "live screen, so nobody can use one by hand.",
}


def no_screen_reason(desktops: DesktopConfig) -> str:
    """Why such desktops cannot be watched live or used by hand, naming the provider; "" when they can."""
    if desktops.provider == "osworld" and desktops.osworld.machines not in OWN_DESKTOPS:
        return (
            f"Machines of OSWorld's own provider {desktops.osworld.machines} show us screenshots only: their "
            "screen is DesktopEnv's. OSWorld on our desktops (x11, qemu) can be watched and used."
        )
    return SCREENSHOTS_ONLY.get(desktops.provider, "")


@dataclass(frozen=True, slots=True)
class Offer:
    """One kind of desktop for demonstrations."""

    name: str
    label: str
    provider: str
    """Of the desk host; it must be usable on some machine."""
    desktops: DesktopConfig


def _offer(name: str, label: str, provider: str, desktops: dict[str, object] | None = None) -> Offer:
    return Offer(name, label, provider, DesktopConfig.model_validate(desktops or {"provider": provider}))


def _osworld(machines: str) -> dict[str, object]:
    # Evaluators of the accessibility tree need it, and a person does not know which evaluator comes.
    return {"provider": "osworld", "osworld": {"machines": machines, "accessibility": machines == "x11"}}


OFFERS = (
    _offer("x11", "X11 desktop", "x11"),
    _offer("qemu", "Virtual machine", "qemu"),
    _offer("windows", "Windows machine", "windows"),
    _offer("osworld-x11", "OSWorld on X11", "x11", _osworld("x11")),
    _offer("osworld-qemu", "OSWorld on a virtual machine", "qemu", _osworld("qemu")),
)


def offers() -> list[Offer]:
    """What the machines that have reported can provide; X11 while none has."""
    usable = {
        row["provider"] for host in Host.objects.all() for row in host.providers if row.get("usable")
    } or {"x11"}
    return [offer for offer in OFFERS if offer.provider in usable]


def offer_named(name: str) -> Offer | None:
    """Also one that no machine provides at this moment: machines come back."""
    return next((offer for offer in OFFERS if offer.name == name), None)
