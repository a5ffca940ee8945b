"""How fast does the trainer train Qwen3-VL-2B, 4B, 8B and 32B on trajectories of eight turns at 1312 x 736?

Every case is a process group of its own: true dimensions, random weights, eight trajectories per GPU and
step, each of about 8 400 tokens of which 7 544 are image tokens. Ours is the product's `Trainer`: packing,
FSDP2, fp32 weights and optimiser, bf16 computing. Peers in the same run, on half as many of the same samples
per step: a plain loop (transformers, bf16 weights, SDPA, gradient checkpointing, all logits), and TRL's
GRPOTrainer (fp32 weights, bf16 autocast, SDPA): its own loss, with our tensors; by its defaults (gradient
checkpointing) and without checkpointing. The faster of these is the peer.

Ours are rows of `training.planning.gpu_layouts` as the launch form puts them on a preset, with as many
trainers as the run has GPUs: nothing is set for the benchmark.

Every case is timed twice: `ready`, all tensors on the GPU before the clock starts, and `whole`, with reading
and decoding of the screenshots (`benchmarks.gpu.train_case`). The median of three steps counts, after one.

MFU: see `benchmarks.gpu.flops` for what is counted (recomputing is not; causal attention counts half).

Bar: whole, >= 43 % MFU for 4B on one GPU and on the most GPUs of the run, 8B >= 40 % on four; on eight, 4B
>= 43 %, 8B >= 40 %, 32B >= 30 %; from four on, 4B makes >= 90 % of as many times one GPU's tokens per second;
Qwen3-4B (text) and Qwen2.5-VL-7B >= 40 %;
ready on both sides, >= 2.5 times the plain loop and >= 2 times TRL on one GPU. Cases of earlier calls (other
numbers of GPUs) stay in the result file and are not judged, but for --resume on the same tree and machine.

    python -m benchmarks.gpu.train_throughput [--gpus 1] [--only REGEX] [--tiny]
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.finished_runs import add_resume
from benchmarks.gpu.train_case import Case
from benchmarks.report import RESULTS, finish, of_this_tree, print_table, stamp
from training.planning.gpu_layouts import LAYOUTS, scaled
from training.planning.presets import load_presets

MIN_MFU_ONE = 0.43
MIN_MFU_MANY = {2: {"4b": 0.43}, 4: {"4b": 0.43, "8b": 0.40}, 8: {"4b": 0.43, "8b": 0.40, "32b": 0.30}}
"""By the most GPUs of the run."""
MIN_SCALING = 0.90
MIN_TIMES_NAIVE = 2.5
MIN_TIMES_TRL = 2.0
LIMIT_S = 240
"""Per case, start and compilation included."""
FAMILIES = {"qwen3-4b": "4b", "qwen2.5-vl-7b": "8b"}
"""Dense models of other families -> the size of Qwen3-VL whose layout is theirs."""
MIN_MFU_FAMILY = 0.40
TRAJECTORIES = {"2b": 8, "4b": 8, "8b": 4, "32b": 2}
"""Per GPU and step."""
PRESET = "qwen3-vl-first-desk"
TRL: dict[str, dict[str, Any]] = {
    "trl": {},
    "trl, no checkpointing": {"gradient_checkpointing": False},
}
"""Name of the peer -> what differs from its defaults."""
SCALE = ("size", "trajectories", "steps", "screen")
VERSIONS = ("torch", "transformers", "triton", "trl", "accelerate", "peft")


def cases(num_gpus: int) -> list[Case]:
    """What is run on so many GPUs, the most telling first."""
    others = [found for size in FAMILIES if (found := of_family(size, num_gpus))]
    if num_gpus > 1:
        sizes = ("4b", "8b", "2b", *(("32b",) if num_gpus >= 4 else ()))
        return [*(found for size in sizes if (found := shipped(size, num_gpus))), *others]
    sizes = ("2b", "4b")
    trl = [
        Case(name=f"{size} {name}", trainer="trl", size=size, trajectories=4, trl=more)
        for size in sizes
        for name, more in TRL.items()
    ]
    naive = [Case(name=f"{size} naive", trainer="naive", size=size, trajectories=4) for size in sizes]
    ours = [found for size in ("4b", "2b", "8b") if (found := shipped(size, 1))]
    return [*(replace(one, is_ready=True) for one in ours), *trl, *naive, *others]


def of_family(size: str, num_gpus: int) -> Case | None:
    """A model of another family, laid out as Qwen3-VL of its size is."""
    found = shipped(FAMILIES[size], num_gpus)
    if found is None:
        return None
    return replace(found, size=size, name=found.name.replace(FAMILIES[size], size))


def to_scale_from(wanted: Sequence[Case], num_gpus: int) -> list[Case]:
    """What the bar of scaling compares with, in the same call, at the size of the others."""
    alone = shipped("4b", 1)
    many = next((case for case in wanted if case.name == "4b ours"), None)
    if num_gpus < 4 or alone is None or many is None:
        return []
    return [replace(alone, **{name: getattr(many, name) for name in SCALE})]


def shipped(size: str, num_gpus: int) -> Case | None:
    """Ours as the launch form lays it out, by the first row with as many trainers; None without any."""
    rows = (
        (gpus, row)
        for (known, gpus), row in LAYOUTS.items()
        if known.lower() == size and row.trainers == num_gpus and not row.cpu_offload
    )
    # A row whose engine has GPUs of its own, where there is one: the other leaves the trainer less memory.
    gpus, row = min(rows, key=lambda found: found[1].is_colocated, default=(0, None))
    if row is None:
        return None
    preset = next(preset for preset in load_presets() if preset.name == PRESET)
    values = scaled(preset.config, size.upper(), gpus)
    optimiser = {name: values["optimiser"][name] for name in ("microbatch_tokens", "microbatch_patches")}
    name = f"{size} lora" if row.lora_rank else f"{size} ours"
    return Case(
        name=name, size=size, trajectories=TRAJECTORIES[size], is_ready=False,
        parallel=values["parallel"], optimiser=optimiser, lora=values["lora"] if row.lora_rank else {},
    )  # fmt: skip


class Process:
    """A case in a process of its own: it prepares at once and waits for its turn."""

    def __init__(self, case: Case, num_gpus: int, folder: Path) -> None:
        self.case = case
        self.output, description, self.turn = (folder / name for name in ("figures", "case", "turn"))
        folder.mkdir()
        description.write_text(json.dumps(asdict(case)))
        launcher = ["-m", "training.distributed.launch", "--ranks", str(num_gpus)]
        command = [sys.executable, *(launcher if num_gpus > 1 else []), "-m", "benchmarks.gpu.train_case"]
        # NVLink multicast is not available everywhere; nothing here gains from it.
        environment = os.environ | {"NCCL_NVLS_ENABLE": "0"}
        environment.setdefault("OMP_NUM_THREADS", "8")
        environment.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
        self.errors = (folder / "errors").open("w+")
        self.process = subprocess.Popen(
            [*command, str(self.output), str(description), str(self.turn)],
            env=environment,
            stderr=self.errors,
        )

    def run(self, limit_s: float) -> dict[str, Any]:
        """The case's figures, and what went wrong."""
        self.turn.touch()
        known: dict[str, Any] = {"case": asdict(self.case)}
        try:
            code = self.process.wait(timeout=limit_s)
            reason = ""
        except subprocess.TimeoutExpired:
            code, reason = 1, f"not ready after {limit_s:.0f} s"
        finally:
            self.end()
        if self.output.exists():
            known = json.loads(self.output.read_text())
        if code or "whole" not in known:
            self.errors.seek(0)
            text = self.errors.read()
            sys.stderr.write(text[-6000:])
            known["error"] = reason or _reason(text)
        return known

    def end(self) -> None:
        """Nothing of a case may hold the GPUs when the next one starts; the launcher ends its ranks."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=35)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def run_all(wanted: Sequence[Case], num_gpus: int, limit_s: float) -> Iterator[tuple[Case, dict[str, Any]]]:
    """Every case and its figures; while one runs, the next one prepares."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:

        def started(number: int) -> Process | None:
            if number >= len(wanted):
                return None
            process = Process(wanted[number], num_gpus, Path(folder) / str(number))
            stack.callback(process.end)
            return process

        process = started(0)
        for number, case in enumerate(wanted, start=1):
            coming = started(number)
            assert process is not None
            yield case, process.run(limit_s)
            process = coming


def _reason(stderr: str) -> str:
    """The last exception that is named."""
    lines = [line for line in stderr.splitlines() if re.search(r"\w(Error|Exception): ", line)]
    return lines[-1].strip()[:300] if lines else "no figures"


def judge(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The figures that have a bar, of the cases that ran."""
    done = {name: row for name, row in found.items() if "whole" in row}
    verdict: dict[str, Any] = {}
    if "4b ours x1" in done:
        verdict["mfu 4b on one"] = (done["4b ours x1"]["whole"]["mfu"], MIN_MFU_ONE)
    most = max((int(name.rpartition("x")[2]) for name in done), default=1)
    for size, least in MIN_MFU_MANY.get(most, {}).items():
        if row := done.get(f"{size} ours x{most}"):
            verdict[f"mfu {size} on {most}"] = (row["whole"]["mfu"], least)
    for size in FAMILIES:
        rows = [row for name, row in done.items() if name.startswith(f"{size} ")]
        if rows:
            verdict[f"mfu {size}"] = (max(row["whole"]["mfu"] for row in rows), MIN_MFU_FAMILY)
    if most >= 4 and all(f"4b ours x{count}" in done for count in (1, most)):
        one, many = (done[f"4b ours x{count}"]["whole"]["tokens_per_s"] for count in (1, most))
        verdict[f"4b scaling 1 to {most}"] = (many / one / most, MIN_SCALING)
    for size in ("2b", "4b"):
        ours = done.get(f"{size} ours x1", {}).get("ready")
        for names, least in ((("naive",), MIN_TIMES_NAIVE), (tuple(TRL), MIN_TIMES_TRL)):
            peers = {
                name: done[f"{size} {name} x1"]["ready"] for name in names if f"{size} {name} x1" in done
            }
            if ours and peers:
                best = max(peers, key=lambda name: peers[name]["tokens_per_s"])
                times = ours["tokens_per_s"] / peers[best]["tokens_per_s"]
                verdict[f"{size} times {best}"] = (times, least)
    return verdict


def machine_figures() -> dict[str, Any]:
    """GPUs and versions of this run."""
    installed = {one.metadata["Name"] for one in importlib.metadata.distributions()}
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return {
        "gpus": names,
        "versions": {name: importlib.metadata.version(name) for name in VERSIONS if name in installed},
        "command": "python -m benchmarks.gpu.train_throughput " + " ".join(sys.argv[1:]),
    }


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--gpus", type=int, default=max(1, torch.cuda.device_count()))
    add_resume(arguments)
    arguments.add_argument("--only", default="", help="regular expression on the names of the cases")
    arguments.add_argument("--limit", type=float, default=LIMIT_S, help="seconds per case")
    arguments.add_argument("--tiny", action="store_true", help="tiny model and screens: does it run at all?")
    arguments.add_argument("--results", type=Path, default=RESULTS / "gpu")
    options = arguments.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the case that runs is ended, too
    recorded = _earlier(options.results)
    found = of_this_tree(recorded) if options.resume else {}
    wanted = [case for case in cases(options.gpus) if re.search(options.only, case.name)]
    if options.tiny:
        small: dict[str, Any] = {
            "size": "tiny",
            "trajectories": 1,
            "steps": 1,
            "screen": (128, 96),
            "parallel": {},
            "profile": False,
        }
        wanted = [replace(case, **small) for case in wanted]
    for num_gpus, some in ((options.gpus, wanted), (1, to_scale_from(wanted, options.gpus))):
        for case, row in run_all(some, num_gpus, options.limit):
            found[f"{case.name} x{num_gpus}"] = row | machine_figures() | stamp()
            _save(options.results, recorded | found)
    verdict = judge(found)
    print_table(
        ("case", "way", "tokens/s", "MFU", "MFU, square", "peak GB", "step s", "commit", "measured"),
        [shown for row in found.items() for shown in _shown(*row)],
    )
    bars = [(name, f"{value:.3f}", f">= {bar}") for name, (value, bar) in verdict.items()]
    print_table(("figure", "measured", "bar"), bars)
    passed = bool(verdict) and all(value >= bar for value, bar in verdict.values())
    figures = {
        "cases": recorded | found,
        "judged": list(found),
        "verdict": {name: {"value": v, "bar": b} for name, (v, b) in verdict.items()},
    }
    return finish("train_throughput", figures, passed=passed, results=options.results)


def _shown(name: str, row: dict[str, Any]) -> Iterator[tuple[object, ...]]:
    if "error" in row:
        yield (name, row["error"][:60], "", "", "", "", "", row["commit"], row["date"])
    for way in (way for way in ("ready", "whole") if way in row):
        one = row[way]
        mfus = (f"{one['mfu']:.3f}", f"{one['mfu_square']:.3f}")
        steps = " ".join(f"{step['step_s']:.2f}" for step in one["steps"])
        yield (
            name,
            way,
            round(one["tokens_per_s"]),
            *mfus,
            f"{row['peak_memory_gb']:.1f}",
            steps,
            row["commit"],
            row["date"],
        )


def _earlier(results: Path) -> dict[str, dict[str, Any]]:
    path = results / "train_throughput.json"
    return json.loads(path.read_text())["figures"]["cases"] if path.exists() else {}


def _save(results: Path, found: dict[str, Any]) -> None:
    """What is known so far, should a later case take the run down."""
    results.mkdir(parents=True, exist_ok=True)
    (results / "train_throughput.json").write_text(json.dumps({"figures": {"cases": found}}))


if __name__ == "__main__":
    sys.exit(main())
