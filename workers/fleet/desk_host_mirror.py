"""The mirror: a thread of an env worker that keeps the database's picture of this machine's desk host.

    claim -> watch (the desk host answers as soon as something changes) -> write what differs -> operations
One env worker per host does it, by a claim in the database that it renews; the others stand by. A desk host
that hangs holds up this thread only, never the heartbeat.
"""

import logging
import threading
import time
from datetime import UTC, datetime

from django.conf import settings
from django.db import DatabaseError, close_old_connections

from webapp.worker_door import host_mirror as calls
from webapp.worker_door.host_mirror import DesktopsWanted, HostNow
from webapp.worker_door.snapshots import unknown_snapshots
from workers import identity
from workers.desktops.contract import EnvError
from workers.desktops.host.client import DeskHostClient
from workers.desktops.host.messages import HostReport
from workers.env import slots
from workers.fleet import run_operations
from workers.fleet.report_teller import ReportTeller
from workers.reports.current import reports

log = logging.getLogger(__name__)

WATCH_S = 1.0
"""Longest wait for a change: operations and the claim need a look about every second."""
PAUSE_S = 1.0
"""Shortest time between two writes; a busy host changes at every trajectory, and each round costs as much as
a few turns. The fleet page looks every 2.5 s."""
SAMPLE_S = 10.0
COMPARE_S = 5.0
"""How often it is looked whether a snapshot has come or gone."""
COMPARE_ALL_S = 30.0
"""How often all of them are compared with the database, changed or not."""
FORGET_S = 600.0


class Mirror:
    """Copies one host's state into the database, round by round."""

    def __init__(self, client: DeskHostClient, host: str, name: str) -> None:
        self._client = client
        self._host = host
        self._name = name
        """Of this worker."""
        self._version = -1
        self._goes_on = False
        """It mirrored in its last round, and the desk host answered."""
        self._teller = ReportTeller(host, name)
        self._sampled_at = self._forgot_at = self._looked_at = self._compared_at = 0.0
        self._compared: set[str] | None = None
        """Snapshots that the database was asked about last."""
        self._is_draining: bool | None = None
        self._expected: list[DesktopsWanted] = []
        """What the desk host was sent last about leases to come."""

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
        reports().request(calls.hand_over_mirror, self._host, self._name)

    def step(self) -> bool:
        """One round; False when another worker mirrors, or there is nothing to mirror."""
        host_now = reports().request(calls.claim_mirror, self._host, self._name, self._goes_on)
        self._goes_on = False  # until the desk host has answered
        if host_now is None:
            self._start_over()
            return False
        try:
            # Who asked for an operation waits for no change.
            wait_s = 0.0 if host_now.has_operations else WATCH_S
            report = self._client.watch(after=self._version, wait_s=wait_s)
            self._follow_drain(host_now.is_draining)
        except EnvError as error:
            self._start_over()
            self._is_draining = None
            reports().request(calls.record_problem, self._host, str(error))
            return False
        self._goes_on = True
        try:
            self.record(report)
        finally:  # what cannot be recorded may be why a person stops a desktop
            if host_now.has_operations:
                run_operations.carry_out(self._client, self._host)
        self._announce_demand(host_now, sum(bool(status.lease_id) for status in report.desktops))
        return True

    def _start_over(self) -> None:
        """What the rows and the desk host say from now on may have nothing to do with what was sent."""
        self._version = -1
        self._teller.forget()

    def record(self, report: HostReport) -> None:
        """Write what differs; history now and then."""
        now = time.monotonic()
        self._teller.tell(report, has_changed=report.version != self._version)
        self._version = report.version
        if now - self._sampled_at >= SAMPLE_S:
            reports().request(calls.sample_host, self._host)
            self._sampled_at = now
        if now - self._looked_at >= COMPARE_S:
            self._looked_at = now
            self._compare_snapshots()
        if now - self._forgot_at >= FORGET_S:
            reports().request(calls.forget_old)
            self._forgot_at = now

    def _compare_snapshots(self) -> None:
        """What the host dropped is gone for people, too; what no trajectory knows any more is dropped."""
        asked_at, now = datetime.now(UTC), time.monotonic()
        try:
            kept = self._client.snapshots()
            if set(kept) == self._compared and now - self._compared_at < COMPARE_ALL_S:
                return
            created = {snapshot.name: snapshot.created_at for snapshot in kept.values()}
            unknown = reports().request(unknown_snapshots, self._host, created, asked_at)
            self._client.drop_snapshots(unknown)
            self._compared, self._compared_at = set(kept), now
        except EnvError as error:
            log.warning("mirror: snapshots not compared, trying again: %s", error)

    def _follow_drain(self, wanted: bool) -> None:
        """Tell the desk host what operators want; also after it was started anew."""
        if wanted != self._is_draining:
            self._client.drain(wanted)
            self._is_draining = wanted

    def _announce_demand(self, host_now: HostNow, num_leased: int) -> None:
        """Queued trajectories become warm desktops before slots ask; slots that have one ask for none."""
        free_slots = max(0, host_now.num_slots - num_leased)
        wanted: list[DesktopsWanted] = []
        if not free_slots:
            wanted, self._expected = self._expected, []  # none of them, for once
        elif host_now.are_desktops_wanted:
            wanted = self._expected = reports().request(calls.wanted_desktops, self._host)
        for kind in wanted:
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
