"""How fast does the trainer train Qwen3-VL-2B, 4B and 8B on trajectories of eight turns at 1312 x 736?

Every case is a process group of its own: true dimensions, random weights, eight trajectories per GPU and
step, each of about 8 400 tokens of which 7 544 are image tokens. Ours is the product's `Trainer`: packing,
FSDP2, fp32 weights and optimiser, bf16 computing, screens decoded from PNG while the GPU works. Peers in
the same run, on the same samples: a plain loop (transformers, bf16, SDPA, gradient checkpointing, all
logits), and TRL's GRPOTrainer with its defaults (fp32 weights, bf16 autocast, SDPA, gradient
checkpointing): its own loss, with our tensors.

MFU: see `benchmarks.gpu.flops` for what is counted (recomputing is not; causal attention counts half).

Bar: >= 40 % MFU for 4B on one GPU; >= 35 % on the most GPUs of the run; >= 2.5 times the plain loop and >=
2 times TRL on one GPU. Cases of earlier runs (other numbers of GPUs) stay in the result file.

    python -m benchmarks.gpu.train_throughput [--gpus 1] [--only REGEX] [--tiny]
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu.train_case import Case
from benchmarks.report import RESULTS, finish, print_table

MIN_MFU_ONE = 0.40
MIN_MFU_MANY = 0.35
MIN_TIMES_NAIVE = 2.5
MIN_TIMES_TRL = 2.0
LIMIT_S = 240
"""Per case, start and compilation included."""
FAST = {"reshard": "never", "compile_blocks": True}
VERSIONS = ("torch", "transformers", "triton", "trl", "accelerate", "peft")


def cases(num_gpus: int) -> list[Case]:
    """What is run on so many GPUs, the most telling first."""
    ours = {
        "4b": Case(name="4b ours", size="4b", parallel=FAST),
        "2b": Case(name="2b ours", size="2b", parallel=FAST),
        "8b": Case(name="8b ours", size="8b", parallel=FAST),
    }
    if num_gpus > 1:
        return list(ours.values())
    peers = [
        Case(name=f"{size} {trainer}", trainer=trainer, size=size, steps=1, trajectories=4)
        for size in ("4b", "2b")
        for trainer in ("naive", "trl")
    ]
    return [ours["4b"], ours["2b"], *peers]


def run(case: Case, num_gpus: int, folder: Path, limit_s: float) -> dict[str, Any]:
    """The case's figures, or what went wrong."""
    description, output = folder / "case.json", folder / "figures.json"
    description.write_text(json.dumps(asdict(case)))
    output.unlink(missing_ok=True)
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        str(num_gpus),
    ]
    command += ["-m", "benchmarks.gpu.train_case", str(output), str(description)]
    # NVLink multicast is not available everywhere; nothing here gains from it.
    environment = os.environ | {"OMP_NUM_THREADS": "8", "NCCL_NVLS_ENABLE": "0"}
    environment.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    try:
        done = subprocess.run(command, env=environment, timeout=limit_s, stderr=subprocess.PIPE, text=True)
    except subprocess.TimeoutExpired:
        return {"case": asdict(case), "error": f"not ready after {limit_s:.0f} s"}
    if done.returncode or not output.exists():
        sys.stderr.write(done.stderr[-6000:])
        return {"case": asdict(case), "error": _reason(done.stderr)}
    return json.loads(output.read_text())


def _reason(stderr: str) -> str:
    """The last line that names an exception."""
    lines = [line for line in stderr.splitlines() if re.search(r"\w+(Error|Exception)\b", line)]
    return lines[-1].strip()[-300:] if lines else "no figures"


def judge(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The figures that have a bar, of the cases that ran."""
    speeds = {name: row["tokens_per_s"] for name, row in found.items() if "error" not in row}
    mfus = {name: row["mfu"] for name, row in found.items() if "error" not in row and "ours" in name}
    verdict: dict[str, Any] = {}
    if (mfu := mfus.get("4b ours x1")) is not None:
        verdict["mfu 4b on one"] = (mfu, MIN_MFU_ONE)
    most = max((int(name.rpartition("x")[2]) for name in mfus), default=1)
    if most > 1 and (mfu := mfus.get(f"4b ours x{most}")) is not None:
        verdict[f"mfu 4b on {most}"] = (mfu, MIN_MFU_MANY)
    for size in ("2b", "4b"):
        for peer, least in (("naive", MIN_TIMES_NAIVE), ("trl", MIN_TIMES_TRL)):
            ours, theirs = speeds.get(f"{size} ours x1"), speeds.get(f"{size} {peer} x1")
            if ours and theirs:
                verdict[f"{size} times {peer}"] = (ours / theirs, least)
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
    arguments.add_argument("--only", default="", help="regular expression on the names of the cases")
    arguments.add_argument("--limit", type=float, default=LIMIT_S, help="seconds per case")
    arguments.add_argument("--tiny", action="store_true", help="tiny model and screens: does it run at all?")
    arguments.add_argument("--results", type=Path, default=RESULTS / "gpu")
    options = arguments.parse_args()
    found = _earlier(options.results)
    with tempfile.TemporaryDirectory() as folder:
        for case in cases(options.gpus):
            if options.tiny:
                case = replace(case, size="tiny", trajectories=1, steps=1, screen=(256, 192), parallel={})
            if re.search(options.only, case.name):
                row = run(case, options.gpus, Path(folder), options.limit) | machine_figures()
                found[f"{case.name} x{options.gpus}"] = row
                _save(options.results, found)
    verdict = judge(found)
    print_table(
        ("case", "tokens/s", "MFU", "MFU, square", "peak GB", "step s"),
        [_shown(*row) for row in found.items()],
    )
    bars = [(name, f"{value:.3f}", f">= {bar}") for name, (value, bar) in verdict.items()]
    print_table(("figure", "measured", "bar"), bars)
    passed = bool(verdict) and all(value >= bar for value, bar in verdict.values())
    figures = {"cases": found, "verdict": {name: {"value": v, "bar": b} for name, (v, b) in verdict.items()}}
    return finish("train_throughput", figures, passed=passed, results=options.results)


def _shown(name: str, row: dict[str, Any]) -> tuple[object, ...]:
    if "error" in row:
        return (name, row["error"][:60], "", "", "", "")
    steps = " ".join(f"{seconds:.2f}" for seconds in row["step_s"])
    mfus = (f"{row['mfu']:.3f}", f"{row['mfu_square']:.3f}")
    return (name, round(row["tokens_per_s"]), *mfus, f"{row['peak_memory_gb']:.1f}", steps)


def _earlier(results: Path) -> dict[str, dict[str, Any]]:
    path = results / "train_throughput.json"
    return json.loads(path.read_text())["figures"]["cases"] if path.exists() else {}


def _save(results: Path, found: dict[str, Any]) -> None:
    """What is known so far, should a later case take the run down."""
    results.mkdir(parents=True, exist_ok=True)
    (results / "train_throughput.json").write_text(json.dumps({"figures": {"cases": found}}))


if __name__ == "__main__":
    sys.exit(main())
