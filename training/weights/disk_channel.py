"""The channel `disk`: a plain transformers folder that the engine reads, or the folder of an adapter.

Works with every engine.

The folder is in memory (/dev/shm) when two versions fit there: the one that is written and the one that a
restarted server may still be reading.
"""

import contextlib
import fcntl
import shutil
import tempfile
from pathlib import Path
from typing import IO

from training.contracts.weight_requests import Canary, Load
from training.distributed.interrupts import on_main
from training.weights.adapter_folder import export_adapter, has_adapter, num_adapter_bytes
from training.weights.channel import Sender
from training.weights.model_folder_writer import export_model
from training.weights.unsharded_weights import num_bytes, plain_weights

MEMORY = Path("/dev/shm")
PREFIX = "deskhand-weights-"
OWNER = "owner"
ROOM = 1.25
"""Free memory that is left alone, as a factor on what two versions need."""


class DiskChannel:
    """Holds the newest two versions."""

    def __init__(self, sender: Sender, *, memory: Path = MEMORY) -> None:
        self.sender = sender
        self.memory = memory
        self._lock: IO[str] | None = None
        """Held while the folder in memory is ours."""
        self.folder = on_main(sender.world, self._choose)

    def push(self, policy_version: int) -> Canary | None:
        """See Channel. A CoordinatorError, not SyncFailed: there is nothing left to fall back to."""
        sender = self.sender
        folder = self.folder / f"v{policy_version}"
        if has_adapter(sender.model):
            export_adapter(sender.model, sender.source, folder, sender.world)
        else:
            export_model(sender.model, sender.source, folder, sender.world, sender.dtype)

        def send() -> Canary | None:
            canary = sender.main_coordinator.sync_weights(
                Load(path=str(folder), policy_version=policy_version)
            )
            for old in self.folder.glob("v*"):
                if old != folder:
                    shutil.rmtree(old, ignore_errors=True)
            return canary

        return on_main(sender.world, send)

    def close(self) -> None:
        """Remove what is in memory; on disk the newest version stays for inspection."""
        if self._lock is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self._lock.close()

    def _choose(self) -> Path:
        remove_abandoned(self.memory)
        model = self.sender.model
        if has_adapter(model):
            size = num_adapter_bytes(model)
        else:
            size = num_bytes(plain_weights(model), self.sender.dtype)
        try:
            free = shutil.disk_usage(self.memory).free
        except OSError:
            free = 0
        if free < 2 * ROOM * size:
            return self.sender.directory
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=self.memory))
        self._lock = (folder / OWNER).open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return folder


def remove_abandoned(memory: Path = MEMORY) -> list[Path]:
    """Remove the folders whose trainers are gone; returns them."""
    gone = []
    for folder in memory.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError), (folder / OWNER).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its trainer lives
            shutil.rmtree(folder, ignore_errors=True)
            gone.append(folder)
    return gone
