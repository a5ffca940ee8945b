"""The mirror: a thread of an env worker that keeps the database's picture of this machine's desk host.

    claim -> watch (the desk host answers as soon as something changes) -> write -> carry out operations
One env worker per host does it, by a claim in the database that it renews; the others stand by. A desk host
that hangs holds up this thread only, never the heartbeat.
"""

from __future__ import annotations

import logging
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import DatabaseError, close_old_connections
from django.utils import timezone

from webapp.fleet import desk_host_reports as rows
from webapp.fleet.free_slots import count_slots_of_host, is_host_draining
from webapp.fleet.models import DesktopPhase
from webapp.trajectories.desktop_demand import waiting_desktops
from workers import identity
from workers.desktops.contract import EnvError
from workers.desktops.host.client import DeskHostClient
from workers.desktops.host.messages import BootFailure, DesktopStatus, HostReport
from workers.env import reporting, slots
from workers.fleet import run_operations

log = logging.getLogger(__name__)

WATCH_S = 1.0
"""Longest wait for a change: operations and the claim need a look about every second."""
PAUSE_S = 0.4
"""Shortest time between two writes; a busy host changes at every trajectory."""
FIGURES_S = 3.0
"""How often CPU, memory and lease times are written, changed or not."""
SAMPLE_S = 10.0
TIDY_S = 5.0
FORGET_S = 600.0


class Mirror:
    """One host's mirror in this process."""

    def __init__(self, client: DeskHostClient, host: str, name: str) -> None:
        self._client = client
        self._host = host
        self._name = name
        """Of this worker."""
        self._version = -1
        self._figures_at = self._sampled_at = self._forgot_at = self._tidied_at = 0.0
        self._is_draining: bool | None = None

    def run(self, stopping: threading.Event) -> None:
        """Until the worker stops."""
        while not stopping.wait(PAUSE_S):
            try:
                close_old_connections()
                slots.give_up_idle()  # here, because a desk host that hangs may hold it up
                if not self.step():
                    stopping.wait(WATCH_S)
            except DatabaseError as error:
                log.warning("mirror: not recorded, trying again: %s", error)
                stopping.wait(WATCH_S)
            except Exception:  # the edge of a thread: without it the fleet page would silently stand still
                log.exception("mirror: this round failed, trying again")
                stopping.wait(WATCH_S)
        self._client.close()
        rows.hand_over_mirror(host=self._host, by=self._name)

    def step(self) -> bool:
        """One round; False when another worker mirrors, or there is nothing to mirror."""
        if not rows.claim_mirror(host=self._host, by=self._name):
            self._version = -1
            return False
        try:
            report = self._client.watch(after=self._version, wait_s=WATCH_S)
            self._follow_drain()
        except EnvError as error:
            self._version = -1
            self._is_draining = None
            rows.record_problem(host=self._host, problem=str(error))
            return False
        self.record(report)
        run_operations.carry_out(self._client, self._host)
        self._tell_demand(num_leased=sum(bool(status.lease_id) for status in report.desktops))
        return True

    def record(self, report: HostReport) -> None:
        """Write what changed; figures and history now and then."""
        now = time.monotonic()
        state = host_state(report)
        if now - self._figures_at >= FIGURES_S:
            rows.record_host(host=self._host, state=state)
            self._figures_at = now
        elif report.version != self._version:
            providers = [health.provider for health in report.health.providers]
            rows.record_desktops(
                host=self._host, desktops=state.desktops, providers=providers, with_figures=False
            )
        self._version = report.version
        if now - self._sampled_at >= SAMPLE_S:
            rows.sample_host(host=self._host)
            self._sampled_at = now
        if now - self._tidied_at >= TIDY_S:
            self._tidied_at = now
            self._tidy_snapshots()
        if now - self._forgot_at >= FORGET_S:
            rows.forget_old()
            self._forgot_at = now

    def _tidy_snapshots(self) -> None:
        """What the host dropped is gone for people, too; what no trajectory knows any more is dropped."""
        asked_at = timezone.now()
        try:
            kept = self._client.snapshots()
            self._client.drop_snapshots(reporting.orphaned_snapshots(kept.values(), asked_at))
        except EnvError as error:
            log.warning("mirror: snapshots not looked after, trying again: %s", error)

    def _follow_drain(self) -> None:
        """Tell the desk host what operators want; also after it was started anew."""
        wanted = is_host_draining(self._host)
        if wanted != self._is_draining:
            self._client.drain(wanted)
            self._is_draining = wanted

    def _tell_demand(self, num_leased: int) -> None:
        """Queued trajectories become warm desktops before slots ask; slots that have one ask for none."""
        free_slots = max(0, count_slots_of_host(self._host) - num_leased)
        for (provider, width, height), count in waiting_desktops().items():
            try:
                self._client.expect(provider, width, height, min(count, free_slots))
            except EnvError as error:
                log.warning("mirror: the desk host was not told of the queue: %s", error)
                return


def host_state(report: HostReport) -> rows.HostState:
    """The report in the words of the database."""
    health, machine = report.health, report.machine
    started_at = timezone.now() - timedelta(seconds=health.uptime_s)
    values: dict[str, Any] = machine.model_dump() | {
        "started_at": started_at,
        "max_desktops": health.max_desktops,
        "swept": health.swept,
        "num_resets": report.num_resets,
        "num_failures": report.num_failures,
        "reset_p50_s": report.resets.p50_s,
        "reset_p99_s": report.resets.p99_s,
        "providers": [provider.model_dump() for provider in health.providers],
        "pool": [kind.model_dump() for kind in report.pool],
        "snapshots": report.snapshots.model_dump(),
        "leaks": [leak.model_dump() for leak in report.leaks],
    }
    return rows.HostState(
        values=values,
        desktops=[desktop_state(status) for status in report.desktops],
        failures=[failed_boot(failure) for failure in report.failures],
    )


def desktop_state(status: DesktopStatus) -> rows.DesktopState:
    info, now = status.info, timezone.now()
    return rows.DesktopState(
        name=info.desktop_id,
        provider=info.provider,
        phase=DesktopPhase(status.phase),
        boot_phase=status.boot_phase,
        generation=info.generation,
        width=info.spec.width,
        height=info.spec.height,
        holder=status.holder[:160],
        num_resets=status.resets,
        num_rebuilds=status.rebuilds,
        num_failures=status.failures,
        reason=status.reason,
        quarantine=status.quarantine,
        log=status.log,
        has_vnc=bool(info.endpoints.vnc),
        last_reset_s=status.last_reset_s,
        lease_until=now + timedelta(seconds=status.lease_left_s) if status.lease_id else None,
        cpu_percent=status.cpu_percent,
        memory_mb=status.usage.rss_mb,
        num_processes=status.usage.processes,
        born_at=now - timedelta(seconds=status.age_s),
    )


def failed_boot(failure: BootFailure) -> rows.FailedBoot:
    picture = Path(failure.screenshot) if failure.screenshot else None
    return rows.FailedBoot(
        number=failure.number,
        at=datetime.fromtimestamp(failure.at, tz=UTC),
        desktop_name=failure.desktop_id,
        provider=failure.provider,
        boot_phase=failure.boot_phase,
        reason=failure.reason,
        log=failure.log,
        screenshot=picture.read_bytes() if picture and picture.exists() else b"",
    )


def start(stopping: threading.Event) -> None:
    """Begin to mirror this machine's desk host, or to stand by, on a thread of its own."""
    me = identity.current()
    mirror = Mirror(DeskHostClient(settings.DESKHOST_SOCKET), me.host, me.name)
    threading.Thread(target=mirror.run, args=[stopping], name="mirror", daemon=True).start()
