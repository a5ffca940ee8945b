"""GPU use: what NVML says becomes rows and charts; a host without a driver says so instead of zeros."""

import os
import sys
from dataclasses import dataclass, field
from subprocess import PIPE, Popen
from types import SimpleNamespace

import pytest
from django.test import Client
from django.utils import timezone

from testing.factories import make_experiment, make_team, make_user
from testing.page_text import page_text
from webapp.analysis.series.gpu_use import gpu_history
from webapp.experiments.models import Attempt, Experiment, GpuSample
from webapp.fleet.models import Worker
from webapp.fleet.services.workers import beat_worker
from workers.gpu import nvml
from workers.gpu.gpu_use import GpuWatch, announce_gpus, own_gpus
from workers.gpu.nvml import Gpus, open_gpus, process_name, visible_indexes

pytestmark = pytest.mark.django_db


class NVMLError(Exception):
    """As pynvml's."""


@dataclass
class FakeNvml:
    """A driver with two GPUs; the second one does not tell about single processes."""

    NVMLError = NVMLError
    has_driver: bool = True
    asked_since: list[int] = field(default_factory=list)

    def nvmlInit(self) -> None:
        if not self.has_driver:
            raise NVMLError("library not found")

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> str:
        return f"GPU-{handle}"

    def nvmlDeviceGetName(self, handle: int) -> bytes:
        return b"NVIDIA H200"

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> SimpleNamespace:
        return SimpleNamespace(total=150_000_000_000, used=75_000_000_000 * handle)

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> SimpleNamespace:
        return SimpleNamespace(gpu=90 - 50 * handle)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[SimpleNamespace]:
        return [SimpleNamespace(pid=10 + handle, usedGpuMemory=60_000_000_000)]

    def nvmlDeviceGetProcessUtilization(self, handle: int, since: int) -> list[SimpleNamespace]:
        if handle == 1:
            raise NVMLError("not supported")
        self.asked_since.append(since)
        return [SimpleNamespace(pid=10, smUtil=80, timeStamp=1000 + since)]


def gpus_of(nvml: FakeNvml) -> Gpus:
    found = open_gpus(nvml, name_of={10: "trainer rank 0", 11: "SGLang"}.__getitem__)
    assert found is not None
    return found


@pytest.fixture
def experiment() -> Experiment:
    experiment = make_experiment(team=make_team())
    beat_worker(name="gpu@here", queue="gpu", host="here", pid=1, slots=1, version="1")
    Attempt.objects.create(experiment=experiment, number=1, worker_name="gpu@here")
    return experiment


def page_of(client: Client, experiment: Experiment) -> str:
    client.force_login(make_user("viewer", team=experiment.team))
    return page_text(client.get(f"/experiments/{experiment.pk}/?tab=gpus"))


def test_a_look_tells_gpus_and_processes_and_asks_only_for_what_is_new() -> None:
    nvml = FakeNvml()
    gpus = gpus_of(nvml)
    uses, processes = gpus.look()
    assert [(use.utilisation, use.memory_bytes) for use in uses] == [(0.9, 0), (0.4, 75_000_000_000)]
    assert [(one.name, one.utilisation) for one in processes] == [("trainer rank 0", 0.8), ("SGLang", None)]
    gpus.look()
    assert nvml.asked_since == [0, 1000]


def test_gpus_are_told_with_what_is_free_and_an_attempt_watches_its_own() -> None:
    gpus = gpus_of(FakeNvml())
    second = {"index": 1, "uuid": "GPU-1", "name": "NVIDIA H200"}
    assert gpus.describe()[1] == second | {"memory_bytes": 150_000_000_000, "free_bytes": 75_000_000_000}
    uses, _ = gpus.only(["1"]).look()
    assert [use.index for use in uses] == [1]


def test_only_visible_gpus_count() -> None:
    assert visible_indexes(4, None) == [0, 1, 2, 3]
    assert visible_indexes(4, "2,3") == [2, 3]
    assert visible_indexes(4, "") == []
    assert visible_indexes(2, "GPU-1a2b") == [0, 1]


def test_samples_reach_the_page_and_its_charts(client: Client, experiment: Experiment) -> None:
    gpus = gpus_of(FakeNvml())
    Worker.objects.update(gpus=gpus.describe())
    watch = GpuWatch(experiment.attempts.get().pk, gpus)
    watch.sample()
    watch.sample()
    assert GpuSample.objects.filter(experiment=experiment, attempt=1).count() == 2
    page = page_of(client, experiment)
    assert "NVIDIA H200" in page
    assert "60.0 GB · 80 %" in page
    assert "75.0 GB of 150.0 GB" in page
    series = gpu_history(experiment)["series"]
    assert series["utilisation/GPU 0"]["y"] == [0.9, 0.9]
    assert series["held/GPU 1 SGLang"]["y"] == [60.0, 60.0]
    assert "process/GPU 1 SGLang" not in series


def test_the_page_says_which_gpu_idles(client: Client, experiment: Experiment) -> None:
    Worker.objects.update(gpus=gpus_of(FakeNvml()).describe())
    for busy in (0.8, 0.9, 1.0):
        uses = [{"index": index, "utilisation": busy * share} for index, share in ((0, 1.0), (1, 0.1))]
        gpus = [use | {"memory_bytes": 0} for use in uses]
        GpuSample.objects.create(experiment=experiment, attempt=1, at=timezone.now(), gpus=gpus)
    page = page_of(client, experiment)
    assert "mean 90 %" in page
    assert page.count("Mostly idle") == 1


def test_a_host_without_a_driver_says_so_and_records_nothing(client: Client, experiment: Experiment) -> None:
    assert open_gpus(FakeNvml(has_driver=False)) is None
    Worker.objects.update(gpus=[])
    page = page_of(client, experiment)
    assert "No NVIDIA GPU on this host" in page
    assert "0 %" not in page.split("No NVIDIA GPU")[1]


def test_what_was_measured_stays_when_the_worker_loses_its_gpus(
    client: Client, experiment: Experiment
) -> None:
    gpus = gpus_of(FakeNvml())
    Worker.objects.update(gpus=gpus.describe())
    GpuWatch(experiment.attempts.get().pk, gpus).sample()
    Worker.objects.update(gpus=[])
    page = page_of(client, experiment)
    assert "The worker has no GPU any more" in page
    assert "data-gpu-charts" in page


def test_before_a_worker_has_looked_for_gpus_the_page_says_that_instead(
    client: Client, experiment: Experiment
) -> None:
    assert "has not reported the GPUs of its host" in page_of(client, experiment)


def test_this_machine_answers_whatever_it_has(experiment: Experiment) -> None:
    announce_gpus("gpu@here")
    worker = Worker.objects.get()
    assert isinstance(worker.gpus, list)
    with GpuWatch(experiment.attempts.get().pk, own_gpus([])):
        pass


def test_processes_are_named_by_what_they_do_for_us() -> None:
    trainer = Popen(
        [sys.executable, "-c", "print(flush=True); input()", "training.loop.train"],
        env={**os.environ, "RANK": "3"},
        stdin=PIPE,
        stdout=PIPE,
    )
    try:
        trainer.stdout.read(1)  # Popen returns a moment before the kernel has the program's arguments.
        assert process_name(trainer.pid) == "trainer rank 3"
    finally:
        trainer.kill()
        trainer.communicate()
    assert process_name(trainer.pid) == f"process {trainer.pid}"


def test_that_there_is_no_gpu_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """A worker without a driver looks every ten seconds."""
    nvml._say_missing.cache_clear()
    with caplog.at_level("INFO"):
        assert [open_gpus(FakeNvml(has_driver=False)) for _ in range(3)] == [None] * 3
    assert [record.message for record in caplog.records] == ["no NVIDIA GPU: library not found"]
