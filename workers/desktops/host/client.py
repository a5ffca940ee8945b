"""Asks the desk host for desktops, by HTTP over its unix socket. Thread-safe."""

import logging
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import httpx

from workers.desktops.contract import DesktopSpec, EnvError
from workers.desktops.host.messages import (
    DesktopInfo,
    DesktopStatus,
    HostHealth,
    HostReport,
    KeptSnapshot,
    Lease,
    Phase,
    Prepared,
    ResetResult,
)
from workers.processes.unix_socket import short_alias

log = logging.getLogger("deskhost.client")

CALL_LIMIT_S = 90.0
BUILD_LIMIT_S = 1200.0
"""For calls that may have to boot a machine first."""
BUILDING = frozenset({"create", "acquire", "reset", "prepare", "keep", "restart", "snapshot", "wake"})


class HostAway(EnvError):
    """Raised when the desk host's socket does not answer; its supervisor starts it again within seconds."""


class DeskHostClient:
    """Blocking calls to one desk host. Every failure is an EnvError."""

    def __init__(self, socket_path: str | Path) -> None:
        self.socket_path = str(socket_path)
        self._http = httpx.Client(
            base_url="http://deskhost",
            # A call may wait for a boot: others must not wait for its connection.
            transport=httpx.HTTPTransport(
                uds=short_alias(self.socket_path), limits=httpx.Limits(max_connections=None)
            ),
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections, of all threads."""
        self._http.close()

    def create(self, provider: str, spec: DesktopSpec) -> DesktopInfo:
        return DesktopInfo.model_validate(self._call("create", provider=provider, spec=spec.model_dump()))

    def acquire(self, provider: str, spec: DesktopSpec, *, holder: str, ttl_s: float = 30.0) -> Lease:
        """Lease a clean desktop; made on demand. EnvError of kind quota = the host is full, try later."""
        arguments = {"provider": provider, "spec": spec.model_dump(), "holder": holder, "ttl_s": ttl_s}
        return Lease.model_validate(self._call("acquire", **arguments))

    def renew(self, lease_id: str, ttl_s: float | None = None) -> Lease:
        return Lease.model_validate(self._call("renew", lease_id=lease_id, ttl_s=ttl_s))

    def release(self, lease_id: str) -> None:
        self._call("release", lease_id=lease_id)

    def reset(self, desktop_id: str, lease_id: str) -> ResetResult:
        return ResetResult.model_validate(self._call("reset", desktop_id=desktop_id, lease_id=lease_id))

    def prepare(self, desktop_id: str, lease_id: str, key: str) -> Prepared:
        """A desktop with the setup of this key done, or one to do it on and then `keep`."""
        answer = self._call("prepare", desktop_id=desktop_id, lease_id=lease_id, key=key)
        return Prepared.model_validate(answer)

    def keep(self, desktop_id: str, lease_id: str) -> ResetResult:
        """Save what was prepared; the desktop becomes a clone of it."""
        return ResetResult.model_validate(self._call("keep", desktop_id=desktop_id, lease_id=lease_id))

    def snapshot(self, desktop_id: str, lease_id: str, label: str) -> KeptSnapshot:
        """Save the desktop as it is now; it goes on. `label` names it for people."""
        answer = self._call("snapshot", desktop_id=desktop_id, lease_id=lease_id, label=label)
        return KeptSnapshot.model_validate(answer)

    def wake(self, desktop_id: str, lease_id: str, name: str) -> ResetResult:
        """The lease's desktop goes on where the snapshot of this name was taken."""
        answer = self._call("wake", desktop_id=desktop_id, lease_id=lease_id, name=name)
        return ResetResult.model_validate(answer)

    def snapshots(self) -> dict[str, KeptSnapshot]:
        """Name -> every snapshot that the host keeps."""
        return {row["name"]: KeptSnapshot.model_validate(row) for row in self._call("snapshots")}

    def drop_snapshots(self, names: Iterable[str]) -> int:
        """Remove these; returns how many there were. Unknown names are no error."""
        return int(self._call("drop_snapshots", names=list(names)))

    def destroy(self, desktop_id: str) -> None:
        self._call("destroy", desktop_id=desktop_id)

    def list(self) -> list[DesktopStatus]:
        return [DesktopStatus.model_validate(row) for row in self._call("list")]

    def health(self) -> HostHealth:
        return HostHealth.model_validate(self._call("health"))

    def watch(self, after: int = -1, wait_s: float = 0.0) -> HostReport:
        """Everything about the host, once something changed after version `after` or `wait_s` passed."""
        return HostReport.model_validate(self._call("watch", after=after, wait_s=wait_s))

    def expect(self, provider: str, width: int, height: int, count: int) -> None:
        """Announce that `count` more leases of this kind will be asked for soon."""
        self._call("expect", provider=provider, size=(width, height), count=count)

    def drain(self, on: bool) -> None:
        """Lease nothing new, or lease again."""
        self._call("drain", on=on)

    def quarantine(self, desktop_id: str, reason: str) -> str:
        """Take a desktop from its holder and keep it as it is. What was done, in words; so below."""
        return str(self._call("quarantine", desktop_id=desktop_id, reason=reason))

    def release_desktop(self, desktop_id: str) -> str:
        """Back to the pool, from quarantine or from its holder."""
        return str(self._call("release_desktop", desktop_id=desktop_id))

    def restart(self, desktop_id: str, reason: str) -> str:
        """A new generation at once."""
        return str(self._call("restart", desktop_id=desktop_id, reason=reason))

    def kill(self, desktop_id: str) -> str:
        """End a desktop. Raises EnvError when there is none, unlike `destroy`."""
        return str(self._call("kill", desktop_id=desktop_id))

    def shutdown(self) -> None:
        """Ask the host to end every desktop and itself."""
        self._call("shutdown")

    def why_dead(self, desktop_id: str) -> str:
        """The host's reason why a desktop is dead; "" when it lives or the reason is not known."""
        try:
            rows = [row for row in self.list() if row.info.desktop_id == desktop_id]
        except EnvError as exc:
            return str(exc)
        if not rows:
            return f"desktop {desktop_id} does not exist any more"
        return rows[0].reason if rows[0].phase is Phase.DEAD else ""

    def _call(self, call: str, **arguments: Any) -> Any:
        try:
            limit_s = BUILD_LIMIT_S if call in BUILDING else CALL_LIMIT_S
            answer = self._http.post(f"/{call}", json=arguments, timeout=limit_s)
        except httpx.TransportError as exc:
            hint = "is `python -m workers.desktops.host` up?"
            raise HostAway(f"the desk host does not answer on {self.socket_path} ({exc}); {hint}") from exc
        fields = answer.json()
        if answer.is_error:
            error = fields["error"]
            raise EnvError(error["message"], kind=error["kind"], permanent=error["permanent"])
        return fields


class LeaseKeeper:
    """Renews a lease from a thread of its own until closed; `lost` says when that failed for good."""

    def __init__(self, client: DeskHostClient, lease: Lease) -> None:
        self._client = client
        self._lease = lease
        self._stop = threading.Event()
        self.lost = threading.Event()
        self._thread = threading.Thread(target=self._renew, name=f"lease-{lease.lease_id}", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._stop.set()
        self._thread.join(timeout=5.0)

    def _renew(self) -> None:
        while not self._stop.wait(self._lease.ttl_s / 3):
            try:
                self._client.renew(self._lease.lease_id)
            except EnvError as exc:
                log.warning("lease %s could not be renewed: %s", self._lease.lease_id, exc)
                if exc.kind == "quota":
                    self.lost.set()
                    break
