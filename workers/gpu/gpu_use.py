"""Records how busy the GPUs are while an attempt runs, and once per worker which GPUs there are."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import asdict

from django.conf import settings
from django.db import DatabaseError
from pynvml import NVMLError

from workers.door.https_door import DoorRefused
from workers.gpu.nvml import Gpus, open_gpus
from workers.gpu.webapp_imports import GpuLook, lent_connection, record_gpu_sample, record_gpus

log = logging.getLogger(__name__)
EVERY_S = 10.0


def announce_gpus(worker_name: str) -> None:
    """Tell which GPUs this worker has and what of them is free: what is placed on it depends on that."""
    gpus = open_gpus()
    record_gpus(
        worker_name,
        gpus.describe() if gpus else [],
        0 if gpus else settings.CPU_PLACES,
        _gang_address(has_gpus=bool(gpus)),
    )


def _gang_address(*, has_gpus: bool) -> str:
    """Where other hosts of one experiment reach this one; "" = they cannot."""
    if settings.POLICY_SERVER.is_local or (has_gpus and not settings.NCCL_INTERFACE):
        return ""
    return settings.POLICY_SERVER.advertised


def announce_for_ever(worker_name: str, stopping: threading.Event) -> None:
    """In a thread of its own, until `stopping`."""

    def forever() -> None:
        while not stopping.wait(EVERY_S):
            try:
                with lent_connection():
                    announce_gpus(worker_name)
            except (DatabaseError, DoorRefused, NVMLError) as error:
                log.warning("GPUs not told, trying again in %.0f s: %s", EVERY_S, error)

    threading.Thread(target=forever, name="gpus", daemon=True).start()


def own_gpus(numbers: Sequence[str]) -> Gpus | None:
    """Those of the host's GPUs that an attempt was placed on; None without any."""
    gpus = open_gpus() if numbers else None
    return gpus.only(numbers) if gpus else None


class GpuWatch:
    """Samples in a thread of its own; use as a context manager. Does nothing without GPUs."""

    def __init__(self, attempt_id: int, gpus: Gpus | None) -> None:
        self._attempt_id = attempt_id
        self._gpus = gpus
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._forever, name="gpu-watch", daemon=True)

    def __enter__(self) -> GpuWatch:
        if self._gpus is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        if self._gpus is not None:
            self._thread.join(timeout=5)

    def _forever(self) -> None:
        while not self._stopping.wait(EVERY_S):
            try:
                with lent_connection():
                    self.sample()
            except (DatabaseError, DoorRefused, NVMLError) as error:
                log.warning("GPU use not recorded, trying again in %.0f s: %s", EVERY_S, error)

    def sample(self) -> None:
        """One look, recorded."""
        assert self._gpus is not None
        gpus, processes = self._gpus.look()
        look = GpuLook(gpus=[asdict(gpu) for gpu in gpus], processes=[asdict(one) for one in processes])
        record_gpu_sample(self._attempt_id, look)
