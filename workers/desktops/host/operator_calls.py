"""What operators do to desktops by hand. Unknown desktops raise EnvError: they may just have gone."""

from workers.desktops.contract import EnvError, ErrorKind
from workers.desktops.host.desktop_record import DesktopRecord
from workers.desktops.host.host import DeskHost
from workers.desktops.host.leases import Leases
from workers.desktops.host.messages import Phase


class Operations:
    """The operators' calls of one host."""

    def __init__(self, host: DeskHost, leases: Leases) -> None:
        self._host = host
        self._leases = leases

    async def quarantine(self, desktop_id: str, reason: str) -> str:
        """Take it from its holder and keep it as it is, until it is released, restarted or killed."""
        if not reason.strip():
            raise EnvError("reason: say why it is kept", kind=ErrorKind.TASK, permanent=True)
        record = self._find(desktop_id)
        holder = record.lease.holder if record.lease else ""
        record.quarantine = reason.strip()  # from here on it is not leased, reset or cleaned
        record.lease = None
        async with record.lock:
            if record.phase is not Phase.DEAD:
                record.enter(Phase.QUARANTINED)
                await record.go_on()
        return f"kept as it is{_taken_from(holder)}"

    async def release(self, desktop_id: str) -> str:
        """Back to the pool: out of quarantine, or taken from its holder; cleaned before its next lease."""
        record = self._find(desktop_id)
        if record.lease is None and not record.quarantine:
            return "it had no holder"
        holder = record.lease.holder if record.lease else ""
        record.quarantine = ""
        record.is_dirty = True
        self._leases.take_back(record, because="released by an operator")
        return f"given back to the pool{_taken_from(holder)}"

    async def restart(self, desktop_id: str, reason: str) -> str:
        """A new generation at once. A lease stays; what ran on the old generation fails."""
        record = self._find(desktop_id)
        record.quarantine = ""
        async with record.lock:
            if record.phase is Phase.GONE:
                raise EnvError(f"desktop {desktop_id} was destroyed meanwhile", kind=ErrorKind.QUOTA)
            await self._host.rebuild(record, reason)
        return f"generation {record.generation} started"

    async def kill(self, desktop_id: str) -> str:
        """End it and everything in it."""
        record = self._find(desktop_id)
        holder = record.lease.holder if record.lease else ""
        await self._host.destroy(desktop_id)
        return f"ended{_taken_from(holder)}"

    def drain(self, on: bool) -> None:
        """Lease nothing new and give up what is free; leases go on until they are released."""
        self._host.is_draining = on
        self._host.note_change()

    def _find(self, desktop_id: str) -> DesktopRecord:
        record = self._host.desktops.get(desktop_id)
        if record is None:
            raise EnvError(f"desktop {desktop_id} does not exist any more", kind=ErrorKind.QUOTA)
        return record


def _taken_from(holder: str) -> str:
    return f"; taken from {holder}" if holder else ""
