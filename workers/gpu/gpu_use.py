"""Records how busy the GPUs are while an attempt runs, and once per worker which GPUs there are."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import cast

from django.conf import settings
from pynvml import NVMLError

from webapp.worker_door.gpu_hosts import GpuLook, ReportedGpu, record_gpu_sample, record_gpus
from workers.gpu.nvml import Gpus, open_gpus
from workers.gpu.train_network import own_train_address
from workers.reports.current import reports
from workers.reports.repeated_step import RepeatedStep

EVERY_S = 10.0


@contextmanager
def _driver_errors() -> Iterator[None]:
    """Raises those of the driver as OSError: they pass, or show elsewhere."""
    try:
        yield
    except NVMLError as error:
        raise OSError(f"NVML: {error}") from error


def announce_gpus(worker_name: str) -> None:
    """Tell which GPUs this worker has and what of them is free: what is placed on it depends on that."""
    gpus = open_gpus()
    reports().request(
        record_gpus,
        worker_name,
        cast(list[ReportedGpu], gpus.describe()) if gpus else [],
        0 if gpus else settings.CPU_PLACES,
        found.address if (found := own_train_address()) else "",
    )


def announce_for_ever(worker_name: str, stopping: threading.Event) -> None:
    """In a thread of its own, until `stopping`."""
    announce = _driver_errors()(partial(announce_gpus, worker_name))
    RepeatedStep("gpus", announce, EVERY_S, stopping=stopping).start()


def own_gpus(numbers: Sequence[str]) -> Gpus | None:
    """Those of the host's GPUs that an attempt was placed on; None without any."""
    gpus = open_gpus() if numbers else None
    return gpus.only(numbers) if gpus else None


class GpuWatch(RepeatedStep):
    """Samples in a thread of its own; use as a context manager. Does nothing without GPUs."""

    def __init__(self, attempt_id: int, gpus: Gpus | None) -> None:
        super().__init__("gpu-watch", self.sample, EVERY_S)
        self._attempt_id = attempt_id
        self._gpus = gpus

    def start(self) -> None:
        if self._gpus is not None:
            super().start()

    @_driver_errors()
    def sample(self) -> None:
        """One look, recorded."""
        assert self._gpus is not None
        gpus, processes = self._gpus.look()
        look = GpuLook(gpus=[asdict(gpu) for gpu in gpus], processes=[asdict(one) for one in processes])
        reports().request(record_gpu_sample, self._attempt_id, look)
