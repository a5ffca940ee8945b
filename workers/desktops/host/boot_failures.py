"""Desktops that did not start: what people need to see why."""

import time
from collections import deque
from itertools import count

from workers.desktops.contract import BootFailed
from workers.desktops.host.desktop_record import DesktopRecord
from workers.desktops.host.messages import BootFailure

KEPT = 50


class BootFailures:
    """The latest failures of this host's life."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self.kept: deque[BootFailure] = deque(maxlen=KEPT)

    def add(self, record: DesktopRecord, error: Exception) -> None:
        """`BootFailed` says more than other errors: how far it came, log, picture of the screen."""
        failure = BootFailure(
            number=next(self._numbers),
            at=time.time(),
            desktop_id=record.desktop_id,
            provider=record.provider,
            reason=str(error),
        )
        if isinstance(error, BootFailed):
            failure.boot_phase = str(error.boot_phase)
            failure.log, failure.screenshot = error.log, error.screenshot
        self.kept.append(failure)
