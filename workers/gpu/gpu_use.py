"""Records how busy the GPUs are while an attempt runs, and once per worker which GPUs there are."""

from __future__ import annotations

import logging
import threading
from dataclasses import asdict

from django.db import DatabaseError, close_old_connections
from pynvml import NVMLError

from workers.gpu.nvml import Gpus, open_gpus
from workers.gpu.webapp_imports import GpuLook, record_gpu_sample, record_gpus

log = logging.getLogger(__name__)
EVERY_S = 10.0


def announce_gpus(worker_name: str) -> None:
    """Tell which GPUs this worker has, for the launch page's checks."""
    gpus = open_gpus()
    record_gpus(name=worker_name, gpus=gpus.describe() if gpus else [])


class GpuWatch:
    """Samples in a thread of its own; use as a context manager. Does nothing on a host without GPUs."""

    def __init__(self, experiment_id: int, attempt: int, gpus: Gpus | None = None) -> None:
        self._experiment_id, self._attempt = experiment_id, attempt
        self._gpus = gpus or open_gpus()
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
                close_old_connections()
                self.sample()
            except (DatabaseError, NVMLError) as error:
                log.warning("GPU use not recorded, trying again in %.0f s: %s", EVERY_S, error)
        close_old_connections()

    def sample(self) -> None:
        """One look, recorded."""
        assert self._gpus is not None
        gpus, processes = self._gpus.look()
        look = GpuLook(gpus=[asdict(gpu) for gpu in gpus], processes=[asdict(one) for one in processes])
        record_gpu_sample(experiment_id=self._experiment_id, attempt=self._attempt, look=look)
