"""What NVML says of the host's GPUs and of our processes on them. Without a driver: no GPUs, no error."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import psutil
import pynvml

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUse:
    index: int
    utilisation: float
    """0..1: share of the last moments in which a kernel ran."""
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessUse:
    gpu: int
    name: str
    utilisation: float | None
    """0..1; None where the driver does not tell."""
    memory_bytes: int | None


@dataclass(slots=True)
class Gpus:
    """The host's GPUs; use `open_gpus`."""

    nvml: Any
    handles: dict[int, Any]
    name_of: Callable[[int], str]
    seen_until: dict[int, int] = field(default_factory=dict)
    """GPU -> time stamp of the newest process sample that was read, microseconds."""

    def describe(self) -> list[dict[str, Any]]:
        """[{index, uuid, name, memory_bytes, free_bytes}]"""
        return [self._describe(index, handle) for index, handle in self.handles.items()]

    def only(self, indexes: Collection[str]) -> Gpus:
        kept = {index: handle for index, handle in self.handles.items() if str(index) in indexes}
        return Gpus(self.nvml, kept, self.name_of)

    def _describe(self, index: int, handle: Any) -> dict[str, Any]:
        memory = self.nvml.nvmlDeviceGetMemoryInfo(handle)
        return {
            "index": index,
            "uuid": _text(self.nvml.nvmlDeviceGetUUID(handle)),
            "name": _text(self.nvml.nvmlDeviceGetName(handle)),
            "memory_bytes": int(memory.total),
            "free_bytes": int(memory.total) - int(memory.used),
        }

    def look(self) -> tuple[list[GpuUse], list[ProcessUse]]:
        """All GPUs and the processes on them now."""
        gpus, processes = [], []
        for index, handle in self.handles.items():
            rates = self.nvml.nvmlDeviceGetUtilizationRates(handle)
            used = int(self.nvml.nvmlDeviceGetMemoryInfo(handle).used)
            gpus.append(GpuUse(index=index, utilisation=rates.gpu / 100, memory_bytes=used))
            busy = self._busy(index, handle)
            for process in self.nvml.nvmlDeviceGetComputeRunningProcesses(handle):
                processes.append(
                    ProcessUse(
                        gpu=index,
                        name=self.name_of(process.pid),
                        utilisation=busy.get(process.pid),
                        memory_bytes=process.usedGpuMemory,
                    )
                )
        return gpus, processes

    def _busy(self, index: int, handle: Any) -> Mapping[int, float]:
        """pid -> share of the GPU's units since the last look; empty where the driver does not tell."""
        try:
            samples = self.nvml.nvmlDeviceGetProcessUtilization(handle, self.seen_until.get(index, 0))
        except self.nvml.NVMLError:  # "not found": nothing ran since; or not supported here
            return {}
        self.seen_until[index] = max((sample.timeStamp for sample in samples), default=0)
        return {sample.pid: sample.smUtil / 100 for sample in samples}


def open_gpus(nvml: Any = pynvml, name_of: Callable[[int], str] | None = None) -> Gpus | None:
    """The GPUs that this worker may use; None without an NVIDIA driver."""
    try:
        nvml.nvmlInit()
        indexes = visible_indexes(nvml.nvmlDeviceGetCount(), os.environ.get("CUDA_VISIBLE_DEVICES"))
        handles = {index: nvml.nvmlDeviceGetHandleByIndex(index) for index in indexes}
    except nvml.NVMLError as error:
        _say_missing(str(error))
        return None
    return Gpus(nvml, handles, name_of or process_name)


@cache
def _say_missing(why: str) -> None:
    """Once for each reason: a worker looks every few seconds."""
    log.info("no NVIDIA GPU: %s", why)


def visible_indexes(count: int, visible: str | None) -> list[int]:
    """GPUs that CUDA_VISIBLE_DEVICES leaves; names other than numbers are not resolved and leave all."""
    if visible is None or not re.fullmatch(r"[\d,\s]*", visible):
        return list(range(count))
    return [index for part in visible.split(",") if part.strip() and (index := int(part)) < count]


def process_name(pid: int) -> str:
    """What a process is for us, e.g. "trainer rank 0"; its program for those of others."""
    try:
        process = psutil.Process(pid)
        words = " ".join(process.cmdline())
        if "training.loop.train" in words:
            return f"trainer rank {process.environ().get('RANK', '0')}"
        if "training.sampler.server" in words:
            return "policy server"
        if "sglang" in words:
            return f"SGLang {_worker_word(words)}".strip()
        return process.name()
    except psutil.Error:  # of another container or user
        return f"process {pid}"


def _worker_word(words: str) -> str:
    """ "scheduler_TP0" of "sglang::scheduler_TP0"; empty for others."""
    found = re.search(r"sglang::(\w+)", words)
    return found[1] if found else ""


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
