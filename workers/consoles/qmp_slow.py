"""Console `qmp-slow`: QEMU's monitor for guests without drivers of ours, e.g. Windows.

Such a guest has an emulated PS/2 keyboard, whose controller holds few bytes: keys that follow each other
without a pause are lost (9 of 151 were). Its windows are not known here, only its screen.
"""

from __future__ import annotations

import time

from workers.consoles.base import ActionRefused
from workers.consoles.qmp import QmpConsole
from workers.consoles.qmp_input import QmpInput
from workers.consoles.qmp_keys import keys_of_char
from workers.providers.base import Endpoints

KEY_GAP_S = 0.01
"""Lossless from 2 ms on; a busy host delays the guest, so five times that."""


DRIVE = "disc0"
"""Name of the drive for the monitor; `workers.windows.hardware` gives it."""
DISC = "disc.iso"


class SlowKeys(QmpInput):
    """A pause after every key."""

    def type_char(self, char: str) -> None:
        keys = keys_of_char(char)
        if keys is None:
            raise ActionRefused("the keyboard does not have a letter of this text")
        self._chord(list(keys))

    def _chord(self, keys: list[str]) -> None:
        super()._chord(keys)
        time.sleep(KEY_GAP_S)


class QmpSlowConsole(QmpConsole):
    """Screen, PS/2 keyboard and USB tablet of one machine."""

    def __init__(self, endpoints: Endpoints) -> None:
        super().__init__(endpoints.model_copy(update={"agent": ""}))
        self._slow_input = SlowKeys(self._client, lambda: self.size, None)
        self._input = self._slow_input

    def type_char(self, char: str) -> None:
        """One character, without an `Action` that somebody could record. Raises ActionRefused."""
        self._slow_input.type_char(char)

    def insert_disc(self, disc: bytes) -> None:
        """Put an ISO image into the drive; an empty one takes the disc out."""
        path = self._folder / DISC
        self._client.execute("eject", id=DRIVE, force=True)
        if disc:
            path.write_bytes(disc)
            self._client.execute("blockdev-change-medium", id=DRIVE, filename=str(path), format="raw")
