"""Desktops that no desk host reports: of remote services."""

from typing import Any

from django.db import transaction
from django.utils import timezone

from webapp.fleet.models import Desktop, DesktopPhase
from webapp.fleet.services.workers import NameTaken
from webapp.live.event_publishing import publish


@transaction.atomic
def record_desktop(*, name: str, host: str, phase: DesktopPhase, **values: Any) -> Desktop:
    """The desktop that a trajectory uses. Its phase is taken only while no desk host tells of it.

    Raises NameTaken when another host's desk host has one of this name.
    """
    known = Desktop.objects.filter(name=name).first()
    if known is not None and known.mirrored_at is not None:
        if known.host != host:
            raise NameTaken(f"desktop {name} is of another host, {known.host}")
        return known
    values |= {"host": host, "phase": phase}
    desktop, _ = Desktop.objects.update_or_create(name=name, defaults=values)
    if known is None or known.phase != phase:
        publish("fleet", "desktop.updated", {"desktop": name, "phase": phase})
    return desktop


@transaction.atomic
def end_remote_desktop(*, name: str, host: str = "") -> None:
    """A desktop of a remote service was closed; of its own desktops a desk host tells by itself.

    `host`: only one that is used from there; "" = any.
    """
    remote = Desktop.objects.filter(name=name, mirrored_at=None).exclude(phase=DesktopPhase.GONE)
    remote = remote.filter(host=host) if host else remote
    if remote.update(phase=DesktopPhase.GONE, updated_at=timezone.now()):
        publish("fleet", "desktop.updated", {"desktop": name, "phase": DesktopPhase.GONE})
