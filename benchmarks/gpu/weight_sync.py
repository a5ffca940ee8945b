"""How long a weight sync takes, by channel, and what the engine then thinks of the canary.

    python -m benchmarks.gpu.weight_sync [--sizes 4b 8b] [--channels nccl ipc disk] [--tiny]

True Qwen3-VL dimensions, random weights. Trainer on GPU 0 (fp32 masters, FSDP2), SGLang behind the policy
server on GPU 1 (nccl, disk) and on GPU 0 (ipc), all on one host. The engine starts with other weights than
the trainer has and the trainer's move before every sync, so a drift near zero proves that exactly this
version arrived; the drift to the version before is shown beside it. Trajectories are drawn all the time.
Seconds are those of the channel, from the first call until the engine generates again, without the canary.

Bar: the best channel of every size takes <= 2 s (median), drift mean <= 0.02 nats for every sync.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.gpu.policy_process import PolicyProcess
from benchmarks.report import finish, print_table

BAR_S = 2.0
BAR_DRIFT = 0.02
STALE_DRIFT = 0.05
"""The canary must tell one version from the next by more than this, or its agreement means nothing."""
RESULTS = Path(__file__).resolve().parents[1] / "results" / "gpu"
START_LIMIT_S = 300
ROOM_BYTES = 64 * 10**9
NEEDED = {"nccl": "own", "disk": "own", "ipc": "colocated"}
"""Channel -> placement of its server."""


def config_values(options: argparse.Namespace, placement: str, channel: str) -> dict[str, Any]:
    """An experiment's config; `channel` only matters to the trainer."""
    engine: dict[str, Any] = {"name": "transformers"}
    if not options.tiny:
        engine = {
            "name": "sglang",
            "placement": placement,
            "attention_backend": "triton",
            "memory_fraction": 0.85,
            # Two servers share a GPU here; what they keep for contexts does not change a sync.
            "extra_arguments": ["--max-total-tokens=32768", "--disable-cuda-graph"],
        }
    return {
        "model": {"dtype": "float32" if options.tiny else "bfloat16", "max_pixels": 1_003_520},
        "sampling": {"max_completion_tokens": 64, "max_context_tokens": 8192},
        "engine": engine | {"weight_sync": channel},
    }


def main() -> int:
    options = parse()
    with tempfile.TemporaryDirectory(dir=shared_memory(), prefix="weight-sync-") as scratch:
        folder = Path(scratch)
        cases = collect(options, folder)
    header = [
        "size",
        "channel",
        "GiB",
        "first s",
        "median s",
        "GB/s",
        "drift",
        "before",
        "in flight",
        "spanned",
    ]
    print_table(header, [row_of(case) for case in cases])
    problems = problems_of(cases, options)
    for problem in problems:
        print(f"MISSED: {problem}")
    versions = next((case["versions"] for case in cases if "versions" in case), {})
    figures = {"bar_s": BAR_S, "bar_drift": BAR_DRIFT, "cases": cases, "missed": problems, **versions}
    figures["command"] = " ".join(["python -m benchmarks.gpu.weight_sync", *sys.argv[1:]])
    return finish("weight_sync", figures, passed=not problems, results=Path(options.results))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", default=["4b", "8b"])
    parser.add_argument("--channels", nargs="+", default=["nccl", "ipc", "disk"], choices=sorted(NEEDED))
    parser.add_argument("--repeats", type=int, default=4, help="syncs after the first one")
    parser.add_argument("--load", type=int, default=8, help="trajectories that are drawn meanwhile")
    parser.add_argument("--skip", nargs="+", default=[], help="servers not to start, e.g. 8b:colocated")
    parser.add_argument("--limit", type=float, default=900, help="seconds for everything")
    parser.add_argument("--tiny", action="store_true", help="try it on a CPU, with the engine transformers")
    parser.add_argument("--results", default=str(RESULTS))
    options = parser.parse_args()
    if options.tiny:
        options.sizes = ["tiny"]
    return options


def shared_memory() -> str | None:
    """Where models of tens of GB are written and read quickly; None = the usual folder for such things."""
    try:
        return "/dev/shm" if shutil.disk_usage("/dev/shm").free > ROOM_BYTES else None
    except OSError:
        return None


# --- servers ---------------------------------------------------------------------------------------------


def collect(options: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    """All cases; a server or a case that fails is a case with an `error`."""
    deadline = time.monotonic() + options.limit
    placements = sorted({NEEDED[channel] for channel in options.channels}, reverse=True)
    pairs = [(size, placement) for placement in placements for size in options.sizes]
    pairs = [pair for pair in pairs if ":".join(pair) not in options.skip]
    cases: list[dict[str, Any]] = []
    with ThreadPoolExecutor(2 * len(pairs)) as threads, contextlib.ExitStack() as stack:
        models = {size: threads.submit(write_model, folder, size) for size in options.sizes}
        starts = {pair: threads.submit(start, options, folder, models[pair[0]], *pair) for pair in pairs}
        trainers = {pair: Trainers(options, folder, *pair) for pair in pairs}
        for trainer in trainers.values():
            stack.callback(trainer.end)
        for pair, starting in starts.items():
            try:
                server = starting.result(timeout=max(1.0, deadline - time.monotonic()))
            except TimeoutError:
                server = "it was not ready in time"
            if isinstance(server, str):
                cases += trainers[pair].failed(server)
                continue
            stack.callback(server.__exit__)
            say(f"{pair}: ready after {server.start_s:.0f} s")
            cases += trainers[pair].run(server, deadline)
    return cases


def write_model(folder: Path, size: str) -> None:
    """What the engine starts with."""
    command = [sys.executable, "-m", "benchmarks.gpu.models", size, str(folder / size)]
    subprocess.run(command, check=True, timeout=200)


def start(
    options: argparse.Namespace, folder: Path, model: Future[None], size: str, placement: str
) -> PolicyProcess | str:
    """A policy server that is ready, or why it is not."""
    model.result()
    server = PolicyProcess(
        model=folder / size,
        config=config_values(options, placement, "auto"),
        folder=folder / f"{size}-{placement}",
        environment={"DESKHAND_ENGINE_GPUS": "" if options.tiny else gpu_of(placement)},
    )
    watchdog = threading.Timer(START_LIMIT_S, lambda: server.process.kill())
    watchdog.start()
    try:
        return server.__enter__()
    except Exception as error:  # noqa: BLE001 - the edge: one server that fails must not end the others
        say(f"{size} {placement}: {error}\n{server.tail()}")
        return f"the server did not start: {error}"
    finally:
        watchdog.cancel()


def gpu_of(placement: str) -> str:
    """The trainer's GPU is the first one that this process may use."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0,1").split(",")
    return visible[-1] if placement == "own" else visible[0]


class Trainers:
    """The trainer of one server, in a process of its own, which gets ready while the server starts."""

    def __init__(self, options: argparse.Namespace, folder: Path, size: str, placement: str) -> None:
        self.size = size
        self.channels = [channel for channel in options.channels if NEEDED[channel] == placement]
        self.output = folder / f"{size}-{placement}.json"
        self.url_file = folder / f"{size}-{placement}.url"
        path = folder / f"{size}-{placement}.case"
        case = {
            "size": size,
            "url_file": str(self.url_file),
            "output": str(self.output),
            "configs": {one: config_values(options, placement, one) for one in self.channels},
            "model": str(folder / size),
            "repeats": {one: 1 if one == "disk" else options.repeats for one in self.channels},
            "load": options.load,
        }
        path.write_text(json.dumps(case))
        # As in training.train: the peers of an NCCL group must agree on it.
        environment = os.environ | {"NCCL_CUMEM_ENABLE": "0"}
        command = [sys.executable, "-m", "benchmarks.gpu.weight_sync_case", str(path)]
        self.process = subprocess.Popen(command, env=environment)

    def run(self, server: PolicyProcess, deadline: float) -> list[dict[str, Any]]:
        """All channels; what was measured until a failure or the deadline is kept."""
        say(f"{self.size}: {', '.join(self.channels)}")
        temporary = self.url_file.with_suffix(".tmp")
        temporary.write_text(server.url)
        temporary.replace(self.url_file)
        words = ""
        try:
            code = self.process.wait(max(1.0, deadline - time.monotonic()))
            words = f"the trainer ended with code {code}" if code else ""
        except subprocess.TimeoutExpired:
            words = "it took too long"
        if words:
            say(f"{self.size} failed: {words}\n{server.tail(4000)}")
        return self.failed(words)

    def failed(self, words: str) -> list[dict[str, Any]]:
        """What there is; `words` say why it is not all."""
        self.end()
        found = json.loads(self.output.read_text()) if self.output.exists() else {}
        cases = []
        for channel in self.channels:
            case = {"size": self.size, "channel": channel} | found.get(channel, {})
            if words and not case.get("is_complete"):
                case["error"] = words
            cases.append(case)
        return cases

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def say(words: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {words}", flush=True)


# --- verdict ---------------------------------------------------------------------------------------------


def row_of(case: dict[str, Any]) -> list[str]:
    syncs = case.get("syncs", [])
    if not syncs:
        return [case["size"], case["channel"], "-", case.get("error", "nothing came back")[:60]]
    later = median_of(case)
    return [
        case["size"],
        case["channel"],
        f"{case['bytes'] / 2**30:.2f}",
        f"{syncs[0]['seconds']:.2f}",
        f"{later:.3f}",
        f"{case['bytes'] / later / 1e9:.1f}",
        f"{max(one['drift'] for one in syncs):.4f}",
        f"{min(one['drift_before'] for one in syncs):.3f}",
        str(case.get("in_flight", 0)),
        str(case.get("spanned", 0)),
    ]


def median_of(case: dict[str, Any]) -> float:
    """Seconds of the syncs after the first."""
    return statistics.median(one["seconds"] for one in case["syncs"][1:] or case["syncs"])


def problems_of(cases: list[dict[str, Any]], options: argparse.Namespace) -> list[str]:
    found = [f"{case['size']} {case['channel']}: {case['error']}" for case in cases if "error" in case]
    for case in cases:
        for number, one in enumerate(case.get("syncs", [])):
            where = f"{case['size']} {case['channel']}, sync {number}"
            if one["drift"] is None or one["drift"] > BAR_DRIFT:
                found.append(f"{where}: drift {one['drift']}")
            if one["drift_before"] < STALE_DRIFT:
                found.append(f"{where}: the canary cannot tell it from the version before")
            if one["fell_back"]:
                found.append(f"{where}: went by disk")
    for size in options.sizes:
        seconds = [median_of(case) for case in cases if case["size"] == size and case.get("syncs")]
        if not seconds or min(seconds) > BAR_S:
            found.append(f"{size}: {min(seconds, default=float('nan')):.2f} s, the bar is {BAR_S:.0f} s")
    return found


if __name__ == "__main__":
    sys.exit(main())
