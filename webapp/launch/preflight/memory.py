"""Pre-flight: are there enough GPUs, and does it fit their memory (or the host's, without GPUs)?"""

from collections.abc import Iterator
from dataclasses import dataclass

import psutil
from django.conf import settings

from training.contracts.config import ExperimentConfig
from training.planning.gpu_layouts import GPU_BYTES, GPU_WORDS
from training.planning.memory_footprint import Footprint, footprint
from training.planning.model_shape import ModelShape
from webapp.experiments.placement.decision import Why, decide
from webapp.experiments.placement.pool import Pool, Waiting
from webapp.experiments.placement.pool_state import demand_of, gpu_workers, have_gpus, workers_in_pool
from webapp.experiments.placement.waiting_reasons import reason
from webapp.fleet.models import Worker, WorkerStatus
from webapp.launch.preflight.check import Check
from webapp.lib.byte_text import size_text

FULL = 0.95
"""Above this part of a GPU's memory the estimate is too close to tell."""
LARGE_FOR_CPU = 300_000_000
"""Weights; a step of a larger model takes minutes to hours without a GPU."""
COMMON_GPUS = ((80e9, "80 GB (A100, H100)"), (GPU_BYTES, GPU_WORDS))


@dataclass(frozen=True, slots=True)
class GpuHost:
    """The online gpu worker with most GPUs."""

    name: str
    gpus: tuple[float, ...]
    """Memory of each, bytes."""


def gpu_host() -> GpuHost | None:
    """None while no gpu worker that has looked is online."""
    online = Worker.objects.filter(queue="gpu", status=WorkerStatus.ONLINE, gpus__isnull=False)
    hosts = [
        GpuHost(worker.host, tuple(gpu["memory_bytes"] for gpu in worker.gpus or ())) for worker in online
    ]
    return max(hosts, key=lambda host: (len(host.gpus), min(host.gpus, default=0)), default=None)


def memory_checks(config: ExperimentConfig, shape: ModelShape) -> Iterator[Check]:
    """GPUs first, then their memory."""
    yield from _several_hosts(config)
    host = gpu_host()
    wants_gpus = config.engine.name == "sglang" or config.model.dtype == "bfloat16"
    if host is None and wants_gpus:
        yield _without_host(config, shape)
    elif host is None or not host.gpus:
        yield from _on_cpu(config, shape, host)
    else:
        yield from _on_gpus(config, shape, host)


def _several_hosts(config: ExperimentConfig) -> Iterator[Check]:
    """Whether what is online could ever take all its parts, by the decision that places it."""
    workers = workers_in_pool(gpu_workers())
    if config.optimiser.num_hosts == 1:
        return
    if settings.GPU_LAUNCHER != "celery":  # what is online are jobs that have their work
        if not settings.TRAIN_NETWORK:
            text = "Set DESKHAND_TRAIN_NETWORK to the network of the nodes: its ranks meet there."
            yield Check("bad", "No network for its ranks", text, "optimiser.num_hosts")
        return
    if not workers:
        return
    demand = demand_of(config, has_gpus=have_gpus(workers))
    pool = Pool(workers=workers, waiting=[Waiting(pk=0, demand=demand)])
    wait = decide(pool).waits.get(0)
    if wait is not None and wait.why is Why.NEVER_FITS:
        title = f"Not {demand.num_hosts} gpu hosts that can share it"
        yield Check("bad", title, reason(demand, wait, pool), "optimiser.num_hosts")
    else:
        hosts = sorted({worker.host for worker in workers if demand.fits(worker)})
        yield Check("good", f"{demand.num_hosts} of {len(hosts)} gpu hosts", ", ".join(hosts))


def _on_gpus(config: ExperimentConfig, shape: ModelShape, host: GpuHost) -> Iterator[Check]:
    memory = min(host.gpus)
    found = footprint(config, shape, memory)
    if config.optimiser.num_hosts > 1:
        pass  # reported by _several_hosts
    elif found.num_gpus > len(host.gpus):
        trainers, engine = config.optimiser.num_processes, found.num_engine_gpus
        text = (
            f"{host.name} is the largest host online. The trainer asks for {trainers}, the engine for "
            f"{engine} of its own. Lower optimiser.num_processes or engine.servers, or set engine.placement "
            "to colocated."
        )
        title = f"{found.num_gpus} GPUs wanted, {len(host.gpus)} there"
        yield Check("bad", title, text, "optimiser.num_processes")
    else:
        yield Check("good", f"{found.num_gpus} of {len(host.gpus)} GPUs", f"On {host.name}.")
    yield verdict(found, memory)


def verdict(found: Footprint, memory: float) -> Check:
    """The estimate against one GPU's memory."""
    title = f"Memory per GPU: up to {size_text(found.per_gpu)} of {size_text(memory)}"
    text = parts_in_words(found)
    remedy = (
        "Lower optimiser.microbatch_tokens, turn on parallel.activation_checkpointing, train with lora.rank, "
        "or use more processes."
    )
    if found.beside_engine > memory:
        text = f"Loading, or weights and optimiser, with the engine's share, do not fit. {text} {remedy}"
        return Check("bad", title, text, "optimiser.num_processes")
    if found.per_gpu > FULL * memory:
        text = f"{text} {remedy}"
        return Check("warning", title, text, "optimiser.microbatch_tokens", bar_of(found, memory))
    return Check("good", title, text, bar=bar_of(found, memory))


def bar_of(found: Footprint, memory: float) -> tuple[tuple[str, float], ...]:
    """The parts of the trainer at work, largest first, in percent of the memory."""
    parts = sorted(found.trainer.items(), key=lambda item: -item[1])
    return tuple((f"{name} {size_text(value)}", 100 * value / memory) for name, value in parts)


def _without_host(config: ExperimentConfig, shape: ModelShape) -> Check:
    """The need alone: no gpu worker has reported its GPUs yet."""
    needs = []
    for memory, name in COMMON_GPUS:
        found = footprint(config, shape, memory)
        needs.append(
            f"{name}: {size_text(found.per_gpu)}{'' if found.per_gpu <= FULL * memory else ', too much'}"
        )
    text = f"Estimated need of one GPU of {'; of '.join(needs)}. {parts_in_words(found)}"
    return Check("info", f"Asks for {found.num_gpus} GPU{'' if found.num_gpus == 1 else 's'}", text)


def _cpu_places(config: ExperimentConfig) -> Iterator[Check]:
    """Hosts whose places are counted (DESKHAND_CPU_PLACES) run nothing larger."""
    workers, demand = workers_in_pool(gpu_workers()), demand_of(config, has_gpus=False)
    if (
        workers
        and demand.num_hosts == 1
        and not demand.needs_gpus
        and not any(demand.fits(worker) for worker in workers)
    ):
        most = max(len(worker.places) for worker in workers)
        text = "They are counted by DESKHAND_CPU_PLACES of the gpu workers. Lower it, or raise that."
        title = f"{demand.num_places} places wanted, the largest host has {most}"
        yield Check("bad", title, text, "optimiser.num_processes")


def _on_cpu(config: ExperimentConfig, shape: ModelShape, host: GpuHost | None) -> Iterator[Check]:
    if config.engine.name == "sglang":
        name = host.name if host else "This host"
        text = (
            f"{name} has no NVIDIA GPU. Set engine.name to transformers, or start a gpu worker on a GPU host."
        )
        yield Check("bad", "SGLang needs GPUs", text, "engine.name")
    if shape.num_parameters > LARGE_FOR_CPU and host is not None:
        text = f"{host.name} has no NVIDIA GPU: a step would take minutes to hours."
        yield Check("warning", f"{shape.num_parameters / 1e9:.1f} B weights on a CPU", text, "model.path")
    yield from _cpu_places(config)
    cores = psutil.cpu_count() or 1
    if config.optimiser.processes_per_host > cores:
        text = f"This host has {cores} cores; more processes than that only wait for each other."
        title = f"{config.optimiser.processes_per_host} processes without GPUs"
        yield Check("warning", title, text, "optimiser.num_processes")
    found = footprint(config, shape)
    free = float(psutil.virtual_memory().available)
    title, text = f"Memory: up to {size_text(found.everything)}", parts_in_words(found)
    if found.everything > free:
        path = "optimiser.microbatch_tokens" if config.optimiser.packing else "optimiser.microbatch_size"
        text = f"This host has {size_text(free)} free. {text} Lower the microbatch or the context limit."
        yield Check("warning", title, text, path)
    else:
        yield Check("good", title, f"{text} This host has {size_text(free)} free.", bar=bar_of(found, free))


def parts_in_words(found: Footprint) -> str:
    """What the figure is made of, largest first."""
    parts = sorted(found.trainer.items(), key=lambda item: -item[1])
    text = "Trainer: " + ", ".join(f"{name} {size_text(value)}" for name, value in parts) + "."
    if found.engine:
        where = "on the same GPUs" if found.is_colocated else "on GPUs of its own"
        where += ", given back during the step" if found.gives_memory else ""
        text += f" Engine: {size_text(found.engine)} {where}."
    elif found.engine_share:
        text += f" Policy server: {size_text(found.engine_share)}."
    return text + (f" In host memory: {size_text(found.host)}." if found.host else "")
