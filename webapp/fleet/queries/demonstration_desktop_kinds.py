"""On which kinds of desktops a demonstration can be recorded."""

from dataclasses import dataclass

from training.contracts.config import DEFAULT_PROVIDER, PROVIDERS, Capability, DesktopConfig, ProviderInfo
from webapp.fleet.models import Host


@dataclass(frozen=True, slots=True)
class Offer:
    name: str
    label: str
    provider: str
    """Of the desk host; it must be usable on some machine."""
    desktops: DesktopConfig


def _own_desktops(info: ProviderInfo) -> Offer:
    return Offer(info.name, info.desktop_title, info.name, DesktopConfig(provider=info.name))


def _osworld_on(info: ProviderInfo) -> Offer:
    # Evaluators of the accessibility tree need it, and a person does not know which evaluator comes.
    knobs = {"machines": info.name, "accessibility": info.can(Capability.ACCESSIBILITY)}
    desktops = DesktopConfig.model_validate({"provider": "osworld", "osworld": knobs})
    return Offer(f"osworld-{info.name}", f"OSWorld on {info.title}", info.name, desktops)


OFFERS = (
    *(_own_desktops(info) for info in PROVIDERS.values() if info.is_on_desk_host),
    *(_osworld_on(info) for info in PROVIDERS.values() if info.runs_desktop_env),
)


def offers() -> list[Offer]:
    """What the machines that have reported can provide; the default one while none has."""
    usable = {
        row["provider"] for host in Host.objects.all() for row in host.providers if row.get("usable")
    } or {DEFAULT_PROVIDER}
    return [offer for offer in OFFERS if offer.provider in usable]


def offer_named(name: str) -> Offer | None:
    """Also one that no machine provides at this moment: machines come back."""
    return next((offer for offer in OFFERS if offer.name == name), None)


def offer_of(desktops: DesktopConfig) -> Offer | None:
    """The kind that a trajectory's desktops are of."""
    machines = desktops.provider_section.machine_provider
    name = f"{desktops.provider}-{machines}" if machines else desktops.provider
    return offer_named(name)
