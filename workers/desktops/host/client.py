"""Ask the desk host for desktops. Thread-safe: a connection per thread, made again after a host restart."""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

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
from workers.processes.unix_socket import connect_unix

log = logging.getLogger("deskhost.client")

CALL_LIMIT_S = 90.0
BUILD_LIMIT_S = 1200.0
"""For calls that may have to boot a machine first."""
BUILDING = frozenset({"create", "acquire", "reset", "prepare", "keep", "restart", "snapshot", "wake"})


class HostAway(EnvError):
    """Raised when nobody answers on the desk host's socket; its supervisor starts it again within seconds."""


class DeskHostClient:
    """Blocking calls to one desk host. Every failure is an EnvError."""

    def __init__(self, socket_path: str | Path) -> None:
        self.socket_path = str(socket_path)
        self._local = threading.local()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close this thread's connection."""
        for name in ("stream", "connection"):
            part = getattr(self._local, name, None)
            setattr(self._local, name, None)
            if part is not None:
                with contextlib.suppress(OSError):
                    part.close()

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
        """Save the desktop as it is now; it goes on. `label` says whose it is."""
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
        """Remove these; how many there were. Unknown names are fine: they are gone."""
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
        """Tell the pool that so many more leases of this kind will be asked for soon."""
        self._call("expect", provider=provider, width=width, height=height, count=count)

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
        """The host's reason why a desktop is dead; "" when it lives or nobody knows."""
        try:
            rows = [row for row in self.list() if row.info.desktop_id == desktop_id]
        except EnvError as exc:
            return str(exc)
        if not rows:
            return f"desktop {desktop_id} does not exist any more"
        return rows[0].reason if rows[0].phase is Phase.DEAD else ""

    def _call(self, call: str, **arguments: Any) -> Any:
        line = json.dumps({"call": call, "arguments": arguments}).encode() + b"\n"
        try:
            answer = self._exchange(line, BUILD_LIMIT_S if call in BUILDING else CALL_LIMIT_S)
        except OSError as exc:
            self.close()
            hint = "is `python -m workers.desktops.host` up?"
            raise HostAway(f"the desk host does not answer on {self.socket_path} ({exc}); {hint}") from exc
        if "error" in answer:
            error = answer["error"]
            raise EnvError(error["message"], kind=error["kind"], permanent=error["permanent"])
        return answer["result"]

    def _exchange(self, line: bytes, limit_s: float) -> dict[str, Any]:
        stream = getattr(self._local, "stream", None) or self._connect()
        self._local.connection.settimeout(limit_s)
        stream.write(line)
        stream.flush()
        answer = stream.readline()
        if not answer:
            raise ConnectionResetError("connection closed")
        return json.loads(answer)

    def _connect(self):
        self._local.connection = connect_unix(self.socket_path, CALL_LIMIT_S)
        self._local.stream = self._local.connection.makefile("rwb")
        return self._local.stream


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
        self._client.close()
