"""Has the guest fetched its input? A starved guest fetches late, and QEMU drops what finds no room.

A virtio input device has a ring of 64 buffers, one per event: the guest gives them, QEMU fills them, the
guest empties them and gives them again. All that was sent has been fetched when every buffer is given again.
QEMU shows both counters (`x-query-virtio-queue-element`, since 7.2); where it does not, or for other devices,
nothing is waited for.

Behind the ring the guest's kernel keeps 64 events for its X server. That has fetched them when a program of
the guest that was asked afterwards has answered: it was waiting for the processor before that program.
"""

import time
from collections.abc import Callable
from typing import Any

from workers.desktops.contract import EnvError
from workers.desktops.qemu.monitor_client import MonitorRefused, QmpClient

BURST = 48
"""Events sent without a look; one command is up to ten."""
LOOK_S = 0.002
TAKEN_LIMIT_S = 20.0
QUICK_ANSWER_S = 0.03
SLOW_ASKS = 4
COUNTER = 1 << 16
"""The ring's counters begin again here."""


class GuestQueues:
    """The input rings of one machine."""

    def __init__(self, client: QmpClient, ask: Callable[[], None] | None = None) -> None:
        self._client = client
        self._ask = ask
        """Has a program of the guest answer; None: it has none that does."""
        self._rings: dict[str, int] | None = None
        """Path of each input device -> size of its ring."""
        self._num_sent = 0

    def make_room(self, num_events: int) -> None:
        """Before this many events are sent: wait while the guest may have too many already."""
        if self._num_sent + num_events > BURST:
            self.wait_taken()
            self.let_programs_read()
        self._num_sent += num_events

    def let_programs_read(self) -> None:
        """One answer is enough where it comes quickly; where it does not, others may wait longer still."""
        for _ in range(SLOW_ASKS):
            if self._ask is None:
                return
            started = time.monotonic()
            self._ask()
            if time.monotonic() - started < QUICK_ANSWER_S:
                return

    def wait_taken(self) -> None:
        """Until the guest has fetched all that was sent. Raises EnvError when it does not."""
        if not self._num_sent:
            return
        self._num_sent = 0
        started = time.monotonic()
        while not all(self._is_taken(path, size) for path, size in self._known_rings().items()):
            if time.monotonic() - started > TAKEN_LIMIT_S:
                raise EnvError(f"the guest has taken no input for {TAKEN_LIMIT_S:g} s")
            time.sleep(LOOK_S)

    def _known_rings(self) -> dict[str, int]:
        if self._rings is None:
            try:
                devices = self._client.execute("x-query-virtio") or []
                paths = [device["path"] for device in devices if device["name"] == "virtio-input"]
                self._rings = {path: self._ring_size(path) for path in paths}
            except MonitorRefused:
                self._rings = {}
        return self._rings

    def _ring_size(self, path: str) -> int:
        return int(self._client.execute("x-query-virtio-queue-status", path=path, queue=0)["vring-num"])

    def _is_taken(self, path: str, size: int) -> bool:
        ring: dict[str, Any] = self._client.execute(
            "x-query-virtio-queue-element", path=path, queue=0, index=0
        )
        given, used = int(ring["avail"]["idx"]), int(ring["used"]["idx"])
        has_driver = given or used
        return not has_driver or (given - used) % COUNTER == size % COUNTER
