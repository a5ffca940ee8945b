"""Does SGLang sample what the trainer computes? True Qwen3-VL-2B dimensions, random weights.

    python -m benchmarks.gpu.engine_smoke [--size 2b] [--gpus-per-server 2] [--tiny]

Through the whole policy server: trajectories with screenshots at 1312x736; transformers scores the sampled
tokens (teacher-forced, fp32 and bf16 weights in this process). Bars: mean |SGLang - transformers|
<= 0.02 nats in bf16, sampled at temperature 1 and greedy; at 0.7, which magnifies rounding, and on the few
tokens of the canary <= 1.5 times what bf16 does to transformers; the eye test passes within 30 s; bias and
ban show in the logprobs; new weights from disk arrive, also in the middle of a completion; a killed server
comes back and generates its turn anew; a colocated one gives its memory back and wakes up as it was; nothing
stays behind.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu.policy_process import PolicyProcess
from benchmarks.gpu.smoke_bench import PIXELS, Bench, make_weights
from benchmarks.gpu.smoke_parts import asleep, bias, canary, eyes, killed, parity
from training.contracts.config import ModelConfig, PromptConfig

Part = Callable[[Bench], dict[str, Any]]


def run_parts(bench: Bench, parts: list[Part], report: dict[str, Any]) -> None:
    """Each on its own: one that fails does not stop the others."""
    for part in parts:
        started = time.monotonic()
        try:
            found = part(bench)
        except Exception as error:  # noqa: BLE001 - the next part says something, too
            traceback.print_exc()
            found = {"passed": False, "error": repr(error)[:500]}
            print(bench.policy.tail(3000), flush=True)
        report[part.__name__] = found | {"seconds": time.monotonic() - started}
        print(part.__name__, json.dumps(report[part.__name__]), flush=True)


def settings(options: argparse.Namespace, placement: str) -> dict[str, Any]:
    """The experiment config of the policy server."""
    extra = options.extra.split() if options.extra else []
    return {
        "model": {"dtype": "float32" if options.tiny else "bfloat16", **PIXELS},
        "prompt": {"style": "computer-use"},
        "sampling": {"max_context_tokens": 16_384, "max_completion_tokens": 4096},
        "engine": {
            "name": "sglang", "placement": placement, "memory_fraction": options.memory_fraction,
            "gpus_per_server": options.gpus_per_server,
            "attention_backend": options.attention_backend, "extra_arguments": extra,
            "start_timeout_s": 400,
        },
    }  # fmt: skip


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--size", default="2b")
    arguments.add_argument("--tiny", action="store_true", help="try this program on a CPU with a stand-in")
    arguments.add_argument("--gpus-per-server", type=int, default=1, help="tensor parallel")
    arguments.add_argument("--memory-fraction", type=float, default=0.4)
    arguments.add_argument("--attention-backend", default="triton")
    arguments.add_argument("--extra", default="", help="further arguments of SGLang")
    arguments.add_argument("--parts", default="parity,bias,eyes,canary,killed,asleep")
    arguments.add_argument("--result", type=Path)
    options = arguments.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() and not options.tiny else "cpu")
    names = options.parts.split(",")
    report: dict[str, Any] = {"torch": torch.__version__, "device": str(device), "size": options.size}
    report |= {"gpus_per_server": options.gpus_per_server, "left_behind": []}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        started = time.monotonic()
        for seed, name in enumerate("ab" if "canary" in names else "a"):
            make_weights(folder, name, "tiny" if options.tiny else options.size, seed, device)
        _empty(device)
        report["make_weights_s"] = time.monotonic() - started
        print("weights", round(report["make_weights_s"], 1), flush=True)
        own = [part for part in (parity, bias, eyes, canary, killed) if part.__name__ in names]
        _serve(folder, options, device, "own", own, report)
        if "asleep" in names:
            _serve(folder, options, device, "colocated", [asleep], report)
    passed = all(part["passed"] for part in report.values() if isinstance(part, dict) and "passed" in part)
    report["passed"] = passed and not report["left_behind"]
    if options.result:
        options.result.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report))
    return 0 if report["passed"] else 1


def _serve(
    folder: Path,
    options: argparse.Namespace,
    device: torch.device,
    placement: str,
    parts: list[Part],
    report: dict[str, Any],
) -> None:
    """One policy server and the parts that ask it; a start that fails is reported."""
    config = settings(options, placement)
    policy = PolicyProcess(model=folder / "a", config=config, folder=folder / placement, tiny=options.tiny)
    try:
        with policy:
            report[f"start_{placement}_s"] = policy.start_s
            print(f"{placement} is ready after {policy.start_s:.1f} s", flush=True)
            bench = Bench(
                folder=folder, model=ModelConfig(**config["model"]), prompt=PromptConfig(**config["prompt"]),
                policy=policy, device=device, tiny=options.tiny, max_tokens=12 if options.tiny else 48,
            )  # fmt: skip
            run_parts(bench, parts, report)
            report[f"said_{placement}"] = policy.said
    except RuntimeError as error:
        report[f"start_{placement}"] = {"passed": False, "error": str(error), "said": policy.said}
        print(error, policy.tail(12_000), sep="\n", flush=True)
    report["left_behind"] += policy.left_behind
    if options.result:
        options.result.write_text(json.dumps(report, indent=2) + "\n")


def _empty(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.empty_cache()


if __name__ == "__main__":
    sys.exit(main())
