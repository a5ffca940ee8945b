"""GPU use of an experiment for its page: the last look, and the history in at most MAX_POINTS buckets."""

from collections import defaultdict
from statistics import fmean
from typing import Any

from webapp.analysis.series.metric_series import Series, no_points, thinned
from webapp.experiments.models import Experiment, GpuSample
from webapp.fleet.models import Worker

MAX_SAMPLES = 20_000
"""Two days of one look every ten seconds; older ones are not shown."""
NUM_RECENT = 60
"""Looks that the mean beside a GPU is taken over: ten minutes."""
IDLE_BELOW = 0.2
"""A GPU that did less than this on average is called idle."""
PANELS = [
    {
        "title": "GPU utilisation",
        "names": ["utilisation/"],
        "kind": "share",
        "limit": None,
        "unit": "",
        "help": "Share of the time in which a kernel ran, per GPU.",
    },
    {
        "title": "GPU memory",
        "names": ["memory/"],
        "kind": "line",
        "limit": None,
        "unit": "GB",
        "help": "Of everything on a GPU, other people's processes included.",
    },
    {
        "title": "Utilisation by process",
        "names": ["process/"],
        "kind": "share",
        "limit": None,
        "unit": "",
        "help": "Share of the units that each process kept busy. Trainer and engine on one GPU take turns.",
    },
    {
        "title": "Memory by process",
        "names": ["held/"],
        "kind": "line",
        "limit": None,
        "unit": "GB",
        "help": "A colocated engine gives its memory back during the optimiser step.",
    },
]


def gpus_context(experiment: Experiment) -> dict[str, Any]:
    """What templates/experiments/parts/gpus.html shows."""
    attempt = experiment.attempts.order_by("-number").defer("policy_token", "gang_secret").first()
    worker = Worker.objects.filter(name=attempt.worker_name).first() if attempt else None
    recent = list(experiment.gpu_samples.order_by("-at")[:NUM_RECENT])
    last = recent[0] if recent else None
    host_gpus = worker.gpus if worker else None
    return {
        "attempt": attempt,
        "worker": worker,
        "host_gpus": host_gpus,
        "was_looked_at": host_gpus is not None,
        "last": last,
        "gpu_rows": [_row(gpu, recent) for gpu in host_gpus or ()],
    }


def _row(gpu: dict[str, Any], recent: list[GpuSample]) -> dict[str, Any]:
    """A GPU of the host with its last use and the mean of `recent`, newest first."""
    uses = [use for sample in recent for use in sample.gpus if use["index"] == gpu["index"]]
    found = next((use for use in recent[0].gpus if use["index"] == gpu["index"]), None) if recent else None
    held = [one for one in recent[0].processes if one["gpu"] == gpu["index"]] if recent else []
    mean = fmean(use["utilisation"] for use in uses) if uses else None
    total = gpu["memory_bytes"] or 1
    return {
        "gpu": gpu,
        "use": found,
        "mean": mean,
        "is_idle": mean is not None and mean < IDLE_BELOW,
        "memory_share": found["memory_bytes"] / total if found else None,
        "processes": [
            one | {"memory_share": one["memory_bytes"] / total if one["memory_bytes"] else None}
            for one in held
        ],
    }


def gpu_history(experiment: Experiment) -> dict[str, Any]:
    """Panels, and name -> {"x": milliseconds, "y": values}, for the charts with a time axis."""
    rows = experiment.gpu_samples.order_by("-at").values_list("at", "gpus", "processes")[:MAX_SAMPLES]
    lines: Series = defaultdict(no_points)

    def add(name: str, when: int, value: float) -> None:
        lines[name]["x"].append(when)
        lines[name]["y"].append(value)

    for at, gpus, processes in reversed(rows):
        when = int(at.timestamp() * 1000)
        for gpu in gpus:
            add(f"utilisation/GPU {gpu['index']}", when, gpu["utilisation"])
            add(f"memory/GPU {gpu['index']}", when, gpu["memory_bytes"] / 1e9)
        for one in processes:
            name = f"GPU {one['gpu']} {one['name']}"  # sorted, they stand in the order of the GPUs
            if one["utilisation"] is not None:
                add(f"process/{name}", when, one["utilisation"])
            if one["memory_bytes"] is not None:
                add(f"held/{name}", when, one["memory_bytes"] / 1e9)
    times = [when for line in lines.values() for when in (line["x"][0], line["x"][-1])]
    return {
        "panels": PANELS,
        "evaluations": [],
        "series": {name: thinned(line) for name, line in lines.items()},
        "from_step": 0,
        "span": [min(times), max(times)] if times else None,
    }
