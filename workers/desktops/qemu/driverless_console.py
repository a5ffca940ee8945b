"""Console `qmp-slow`: QEMU's monitor for guests without drivers of ours, e.g. Windows.

Such a guest has an emulated PS/2 keyboard, whose queue holds 16 bytes: two or three characters. Keys that the
guest has not fetched in time are lost, so every key waits until the controller's output buffer is empty.
Its windows are not known here, only its screen.
"""

import os
import re
import time
from pathlib import Path

from workers.desktops.console_contract import ActionRefused
from workers.desktops.contract import Endpoints, EnvError
from workers.desktops.qemu.devices import DISC_DRIVE
from workers.desktops.qemu.keyboard_layout import ALL_KEYS, keys_of_char
from workers.desktops.qemu.monitor_input import BUTTONS, QmpInput, button, key
from workers.desktops.qemu.qmp_screen_and_input import QmpConsole

KEY_GAP_S = 0.01
"""Least pause between keys; without a look at the controller, 2 ms were enough on an idle host only."""
LOOK_S = 0.003
EMPTY_LOOKS = 3
"""Looks in a row that must find the buffer empty: it is so for a moment between two bytes as well."""
TAKEN_LIMIT_S = 20.0
"""A starved machine stands still for seconds; one that takes no key for this long has no keyboard driver."""
STATUS_PORT = "i /1xb 0x64"
"""HMP: read the keyboard controller's status, which changes nothing. Bit 0: a byte waits for the guest."""
_VALUE = re.compile(r"=\s*0x([0-9a-fA-F]+)")
DISC = "disc.iso"


class Ps2Keys(QmpInput):
    """One key at a time, each only when the guest has taken the one before."""

    def type_char(self, char: str) -> None:
        keys = keys_of_char(char)
        if keys is None:
            raise ActionRefused("the keyboard does not have a letter of this text")
        self._chord(list(keys))

    def let_go(self) -> None:
        """One by one, as keys are typed: the queue holds no more."""
        for up in (*(key(name, False) for name in ALL_KEYS), *(button(name, False) for name in BUTTONS)):
            self._send(up)
            self._wait_taken()
        self._held.clear()

    def _chord(self, keys: list[str]) -> None:
        super()._chord(keys)
        self._settle()

    def _settle(self) -> None:
        time.sleep(KEY_GAP_S)
        self._wait_taken()

    def _wait_taken(self) -> None:
        deadline = time.monotonic() + TAKEN_LIMIT_S
        num_empty = 0
        while num_empty < EMPTY_LOOKS:
            num_empty = 0 if self._has_waiting_byte() else num_empty + 1
            if time.monotonic() > deadline:
                raise EnvError(f"the guest has taken no key for {TAKEN_LIMIT_S:g} s")
            time.sleep(LOOK_S)

    def _has_waiting_byte(self) -> bool:
        monitor_output = self._client.execute("human-monitor-command", **{"command-line": STATUS_PORT})
        found = _VALUE.search(monitor_output)
        if found is None:
            raise EnvError(f"QEMU does not tell the keyboard's state: {monitor_output[:80]!r}")
        return bool(int(found[1], 16) & 1)


class DriverlessConsole(QmpConsole):
    """Screen, PS/2 keyboard and USB tablet of one machine."""

    def __init__(self, endpoints: Endpoints) -> None:
        super().__init__(endpoints.model_copy(update={"agent": ""}))
        self._ps2_keys = Ps2Keys(self._client, lambda: self.size, None)
        self._input = self._ps2_keys

    def type_char(self, char: str) -> None:
        """One character, without an `Action` that could be recorded. Raises ActionRefused."""
        self._ps2_keys.type_char(char)

    def insert_disc(self, disc: bytes) -> None:
        """Put an ISO image into the drive; an empty one takes the disc out."""
        path = self._folder / DISC
        self._client.execute("eject", id=DISC_DRIVE, force=True)
        if disc:
            _write_for_owner(path, disc)
            self._client.execute("blockdev-change-medium", id=DISC_DRIVE, filename=str(path), format="raw")


def _write_for_owner(path: Path, data: bytes) -> None:
    """A new file that the folder's owner may read: QEMU runs as the desk host's user, and we may be root."""
    path.unlink(missing_ok=True)
    owner = path.parent.stat()
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as file:
        if owner.st_uid != os.geteuid():
            os.fchown(handle, owner.st_uid, owner.st_gid)
        file.write(data)
