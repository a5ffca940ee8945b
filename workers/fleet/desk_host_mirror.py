"""The mirror: a thread of an env worker that keeps the database's picture of this machine's desk host.

    claim -> watch (the desk host answers as soon as something changes) -> write -> carry out operations
One env worker per host does it, by a claim in the database that it renews; the others stand by. A desk host
that hangs holds up this thread only, never the heartbeat.
"""

from __future__ import annotations

import logging
import threading
import time
from datetime import UTC, datetime

from django.conf import settings
from django.db import DatabaseError, close_old_connections

from workers import identity
from workers.desktops.contract import EnvError
from workers.desktops.host.client import DeskHostClient
from workers.desktops.host.messages import HostReport
from workers.env import slots
from workers.fleet import reporting, run_operations

log = logging.getLogger(__name__)

WATCH_S = 1.0
"""Longest wait for a change: operations and the claim need a look about every second."""
PAUSE_S = 1.0
"""Shortest time between two writes; a busy host changes at every trajectory, and each round costs as much as
a few turns. The fleet page looks every 2.5 s."""
FIGURES_S = 3.0
"""How often CPU, memory and lease times are written, changed or not."""
SAMPLE_S = 10.0
COMPARE_S = 5.0
FORGET_S = 600.0


class Mirror:
    """Copies one host's state into the database, round by round."""

    def __init__(self, client: DeskHostClient, host: str, name: str) -> None:
        self._client = client
        self._host = host
        self._name = name
        """Of this worker."""
        self._version = -1
        self._figures_at = self._sampled_at = self._forgot_at = self._compared_at = 0.0
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
        reporting.hand_over_mirror(host=self._host, by=self._name)

    def step(self) -> bool:
        """One round; False when another worker mirrors, or there is nothing to mirror."""
        orders = reporting.claim_mirror(host=self._host, by=self._name)
        if orders is None:
            self._version = -1
            return False
        try:
            report = self._client.watch(after=self._version, wait_s=WATCH_S)
            self._follow_drain(orders.is_draining)
        except EnvError as error:
            self._version = -1
            self._is_draining = None
            reporting.record_problem(host=self._host, problem=str(error))
            return False
        self.record(report)
        run_operations.carry_out(self._client, self._host)
        self._announce_demand(orders, sum(bool(status.lease_id) for status in report.desktops))
        return True

    def record(self, report: HostReport) -> None:
        """Write what changed; figures and history now and then."""
        now = time.monotonic()
        if now - self._figures_at >= FIGURES_S:
            reporting.record_report(self._host, report, with_figures=True)
            self._figures_at = now
        elif report.version != self._version:
            reporting.record_report(self._host, report, with_figures=False)
        self._version = report.version
        if now - self._sampled_at >= SAMPLE_S:
            reporting.sample_host(host=self._host)
            self._sampled_at = now
        if now - self._compared_at >= COMPARE_S:
            self._compared_at = now
            self._compare_snapshots()
        if now - self._forgot_at >= FORGET_S:
            reporting.forget_old()
            self._forgot_at = now

    def _compare_snapshots(self) -> None:
        """What the host dropped is gone for people, too; what no trajectory knows any more is dropped."""
        asked_at = datetime.now(UTC)
        try:
            kept = self._client.snapshots()
            self._client.drop_snapshots(reporting.unknown_snapshots(kept.values(), asked_at))
        except EnvError as error:
            log.warning("mirror: snapshots not compared, trying again: %s", error)

    def _follow_drain(self, wanted: bool) -> None:
        """Tell the desk host what operators want; also after it was started anew."""
        if wanted != self._is_draining:
            self._client.drain(wanted)
            self._is_draining = wanted

    def _announce_demand(self, orders: reporting.HostOrders, num_leased: int) -> None:
        """Queued trajectories become warm desktops before slots ask; slots that have one ask for none."""
        free_slots = max(0, orders.num_slots - num_leased)
        for kind in orders.wanted:
            try:
                self._client.expect(kind.provider, kind.width, kind.height, min(kind.count, free_slots))
            except EnvError as error:
                log.warning("mirror: the desk host did not get the queue's length: %s", error)
                return


def start(stopping: threading.Event) -> None:
    """Begin to mirror this machine's desk host, or to stand by, on a thread of its own."""
    me = identity.current()
    mirror = Mirror(DeskHostClient(settings.DESKHOST_SOCKET), me.host, me.name)
    threading.Thread(target=mirror.run, args=[stopping], name="mirror", daemon=True).start()
