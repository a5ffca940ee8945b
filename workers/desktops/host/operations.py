"""What operators do to desktops by hand. Unknown desktops raise EnvError: they may just have gone."""

from __future__ import annotations

from workers.desktops.contract import EnvError, ErrorKind
from workers.desktops.host.desktop_record import Managed
from workers.desktops.host.host import DeskHost
from workers.desktops.host.messages import Phase


async def quarantine(host: DeskHost, desktop_id: str, reason: str) -> str:
    """Take it from whoever has it and keep it as it is, until it is released, restarted or killed."""
    if not reason.strip():
        raise EnvError("reason: say why it is kept", kind=ErrorKind.TASK, permanent=True)
    managed = _find(host, desktop_id)
    holder = managed.lease.holder if managed.lease else ""
    managed.quarantine = reason.strip()  # from here on nobody leases, resets or cleans it
    managed.lease = None
    async with managed.lock:
        if managed.phase is not Phase.DEAD:
            managed.enter(Phase.QUARANTINED)
            await managed.go_on()
    return f"kept as it is{_taken_from(holder)}"


async def release(host: DeskHost, desktop_id: str) -> str:
    """Back to the pool: out of quarantine, or taken from its holder; cleaned before anyone gets it."""
    managed = _find(host, desktop_id)
    if managed.lease is None and not managed.quarantine:
        return "nobody held it"
    holder = managed.lease.holder if managed.lease else ""
    managed.quarantine = ""
    managed.is_dirty = True
    host.leases.take_back(managed, because="released by an operator")
    return f"given back to the pool{_taken_from(holder)}"


async def restart(host: DeskHost, desktop_id: str, reason: str) -> str:
    """A new generation at once. A lease stays; what ran on the old generation fails."""
    managed = _find(host, desktop_id)
    managed.quarantine = ""
    async with managed.lock:
        if managed.phase is Phase.GONE:
            raise EnvError(f"desktop {desktop_id} was destroyed meanwhile", kind=ErrorKind.QUOTA)
        await host.rebuild(managed, reason)
    return f"generation {managed.generation} started"


async def kill(host: DeskHost, desktop_id: str) -> str:
    """End it and everything in it."""
    managed = _find(host, desktop_id)
    holder = managed.lease.holder if managed.lease else ""
    await host.destroy(desktop_id)
    return f"ended{_taken_from(holder)}"


def drain(host: DeskHost, on: bool) -> None:
    """Lease nothing new and give up what is free; leases go on until they are released."""
    host.is_draining = on
    host.note_change()


def _find(host: DeskHost, desktop_id: str) -> Managed:
    managed = host.desktops.get(desktop_id)
    if managed is None:
        raise EnvError(f"desktop {desktop_id} does not exist any more", kind=ErrorKind.QUOTA)
    return managed


def _taken_from(holder: str) -> str:
    return f"; taken from {holder}" if holder else ""
