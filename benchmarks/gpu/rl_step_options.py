"""The options of `rl_step`, and the sizes of a run that they mean."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from benchmarks.finished_runs import add_resume
from benchmarks.gpu.rl_step_arm import Scale
from benchmarks.gpu.sizes import OTHER_FAMILIES, SIZES
from benchmarks.report import RESULTS

COMPLETION = 56
"""Tokens per turn, as in `benchmarks.gpu.workload`."""
TINY = Scale(
    size="tiny",
    screen=(128, 96),
    turns=2,
    max_tokens=4,
    group_size=2,
    model={"dtype": "float32", "max_pixels": 12_288},
    optimiser={"packing": True, "microbatch_tokens": 2_000},
    engine_more={},
)


def sizes_of(options: argparse.Namespace) -> list[str]:
    """Models to measure; tiny ones are named by their family."""
    if options.tiny:
        return options.only or ["tiny"]
    return [OTHER_FAMILIES[family] for family in options.only] or [options.size]


def scale_of(options: argparse.Namespace, size: str) -> Scale:
    """Sizes of the run."""
    if options.tiny:
        return replace(TINY, size=size, engine=options.engine, shows=size != "qwen3")
    recomputes = {"activation_checkpointing": True, "recomputed_share": options.recomputed}
    layout = {"reshard": options.reshard, "compile_blocks": not options.eager}
    return Scale(
        size=size,
        max_tokens=options.completion,
        parallel=layout | (recomputes if options.recomputed else {}),
        shows=SIZES[size].sees,
        adapters=options.adapters,
    )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A whole RL step, measured.")
    add_resume(parser)
    parser.add_argument("--size", default="8b")
    parser.add_argument("--only", nargs="+", choices=sorted(OTHER_FAMILIES), default=[], metavar="FAMILY",
                        help="instead of --size: models of these families, one after the other")  # fmt: skip
    parser.add_argument("--splits", nargs="+", default=["4+4"], help="N+M, or N@M for colocated")
    parser.add_argument("--better", action="store_true", help="also the split that the first arm promises")
    parser.add_argument("--staleness", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--steps", type=int, default=4, help="measured steps of each arm")
    parser.add_argument("--completion", type=int, default=COMPLETION, help="tokens of a completion")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds that a desktop takes per turn")
    parser.add_argument("--recomputed", type=float, default=0.3, help="share of recomputed blocks; 0 = none")
    parser.add_argument("--reshard", default="never", choices=["never", "always"])
    parser.add_argument("--adapters", type=int, default=0, metavar="RANK", help="train LoRA; 0 = all weights")
    parser.add_argument("--eager", action="store_true", help="blocks that are not compiled")
    parser.add_argument("--limit", type=float, default=1800, help="seconds for all arms of a model")
    parser.add_argument("--scratch", default=None)
    parser.add_argument("--results", type=Path, default=RESULTS / "gpu")
    parser.add_argument("--tiny", action="store_true", help="a tiny model on a CPU, gloo")
    parser.add_argument("--engine", default="transformers", choices=["transformers", "sglang"],
                        help="with --tiny; sglang is then the tests' stand-in")  # fmt: skip
    options = parser.parse_args()
    if options.tiny:
        options.size = "tiny"
    return options
