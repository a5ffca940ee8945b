"""How many turns a second does the whole path draw, and what does the policy server cost?

Env worker's client -> policy server (HTTP) -> SGLang, Qwen3-VL of true dimensions with random weights, drawn
screens at 1312x736 that differ in every turn, no desktops: turns follow each other at once. Groups of eight
siblings share the first screen, as GRPO's do. The peer is the same turns straight to SGLang (pixels already
lying in its folder), alternating with ours in the same run, caches flushed in between.

Hit rate: cached tokens of all tokens that a server had already been sent (earlier turns, the siblings' first
turn, the common system prompt). The plain share of all prompt tokens stands beside it; its ceiling follows
from the number of turns (7 of 8 screens are old at the last turn, but none at the first).

Bars: hit rate >= 85 %; overhead <= 5 % (turns/s against SGLang alone, at the most concurrent case).

    python -m benchmarks.gpu.rollout_throughput [--size 2b] [--concurrent 8,32,64] [--turns 8] [--tiny]
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.gpu.models import make_folder
from benchmarks.gpu.policy_process import PolicyProcess
from benchmarks.gpu.rollout_load import Load, Plan, Talk, Told, hash_of
from benchmarks.report import RESULTS, finish, percentile, print_table
from training.config import ModelConfig, PromptConfig
from training.rendering import Renderer
from training.sglang import calls
from training.sglang.client import Sglang

MIN_HIT_RATE = 0.85
MAX_OVERHEAD = 0.05
GROUP = 8
PIXELS = {"min_pixels": 65_536, "max_pixels": 1_048_576}
STYLE = "computer-use"
STARTED = time.monotonic()


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One row of the table."""

    concurrent: int
    turns: int
    rounds: int
    """Trajectories per concurrent place."""
    repeats: int
    """Of each way; the median counts."""


def talks_of(case: Case, tag: str) -> list[Talk]:
    """Trajectories in groups; names differ between repeats, pictures do not."""
    talks = []
    for number in range(case.concurrent * case.rounds):
        group = number // GROUP
        pictures = [f"g{group}"] + [f"t{number}-{turn}" for turn in range(1, case.turns)]
        talks.append(Talk(name=f"{tag}-{number}", number=number, pictures=tuple(pictures)))
    return talks


def draw_screens(options: argparse.Namespace, cases: list[Case], folder: Path) -> tuple[Plan, Load]:
    """PNGs for the clients, and pixels for the direct requests, while the server starts."""
    started = time.monotonic()
    screens = folder / "screens"
    screens.mkdir()
    plan = Plan(
        policy_url="", server_urls=(), screens=str(screens), model=str(folder / "model"), pixels=PIXELS,
        style=STYLE, turns=options.turns, max_tokens=4 if options.tiny else options.completion,
        size=(160, 96) if options.tiny else (1312, 736),
    )  # fmt: skip
    load = Load(2 if options.tiny else 6, plan)
    names = sorted({picture for case in cases for talk in talks_of(case, "") for picture in talk.pictures})
    load.draw([(name, place) for place, name in enumerate(names)], plan)
    assert len({hash_of(name)[:16] for name in names}) == len(names), "pictures need hashes of their own"
    print(f"{len(names)} screens drawn in {time.monotonic() - started:.0f} s", flush=True)
    return plan, load


def reusable_tokens(told: list[Told], case: Case, system_tokens: int) -> int:
    """Prompt tokens that some server had been sent before, at best."""
    by_turn: dict[int, list[Told]] = {}
    for one in told:
        by_turn.setdefault(one.turn, []).append(one)
    total = 0
    for turn in range(1, case.turns):
        total += sum(one.prompt_tokens + one.completion_tokens for one in by_turn[turn - 1])
    firsts = by_turn[0]
    num_groups = -(-len(firsts) // GROUP)
    total += sum(one.prompt_tokens for one in firsts) - num_groups * (firsts[0].prompt_tokens - system_tokens)
    return total


def rate(told: list[Told]) -> float:
    """Turns per second between the first question and the last answer."""
    return len(told) / (max(one.ended for one in told) - min(one.started for one in told))


def measure(case: Case, load: Load, plan: Plan, policy: PolicyProcess, system_tokens: int) -> dict[str, Any]:
    """Both ways in turn, each with empty caches."""
    plan = replace(plan, turns=case.turns)
    rates: dict[str, list[float]] = {"policy": [], "direct": []}
    latencies: dict[str, list[float]] = {"policy": [], "direct": []}
    cached = prompt = reusable = 0
    for repeat in range(case.repeats):
        for way in ("policy", "direct") if repeat % 2 == 0 else ("direct", "policy"):
            flush(plan)
            before = policy.ask("GET", "/engine")["usage"]
            talks = talks_of(case, f"{way}-{case.concurrent}-{case.turns}-{repeat}")
            told = load.run(plan, talks, concurrent=case.concurrent, direct=way == "direct")
            rates[way].append(rate(told))
            latencies[way] += [one.ended - one.started for one in told]
            if way == "policy":
                after = policy.ask("GET", "/engine")["usage"]
                cached += after["cached_tokens"] - before["cached_tokens"]
                prompt += after["prompt_tokens"] - before["prompt_tokens"]
                reusable += reusable_tokens(told, case, system_tokens)
    ours, theirs = median(rates["policy"]), median(rates["direct"])
    figures = {
        "concurrent": case.concurrent,
        "turns": case.turns,
        "trajectories": case.concurrent * case.rounds,
        "turns_per_s": ours,
        "direct_turns_per_s": theirs,
        "overhead": 1 - ours / theirs,
        "turn_p50_s": percentile(latencies["policy"], 0.5),
        "turn_p95_s": percentile(latencies["policy"], 0.95),
        "direct_p50_s": percentile(latencies["direct"], 0.5),
        "hit_rate": cached / reusable,
        "cached_share": cached / prompt,
        "cached_share_ceiling": reusable / prompt,
        "rates": rates,
    }
    print(json.dumps(figures), flush=True)
    return figures


def wait_for(path: Path | None) -> None:
    """Until other work on the GPU is over, which `path` says; two minutes at most."""
    deadline = time.monotonic() + 120
    while path is not None and not path.exists() and time.monotonic() < deadline:
        time.sleep(0.2)


def flush(plan: Plan) -> None:
    for url in plan.server_urls:
        with Sglang(url) as server:
            server.run(calls.flush_cache())


def versions(policy: PolicyProcess) -> dict[str, str]:
    """Of what the two sides run."""
    found = {name: importlib.metadata.version(name) for name in ("torch", "transformers")}
    url = policy.ask("GET", "/engine")["servers"][0]["url"]
    try:
        with Sglang(url) as server:
            found["sglang"] = str(server.run(calls.server_info()).get("version"))
    except calls.SglangError:
        found["sglang"] = "stand-in"
    return found


def settings(options: argparse.Namespace, longest: int) -> dict[str, Any]:
    """The experiment config of the policy server."""
    return {
        "model": {"dtype": "float32" if options.tiny else "bfloat16", **PIXELS},
        "prompt": {"style": STYLE},
        "sampling": {"max_context_tokens": max(4096, longest * 1200 + 2048)},
        "engine": {
            "name": "sglang", "servers": options.servers, "memory_fraction": options.memory_fraction,
            "attention_backend": options.attention_backend, "start_timeout_s": 400,
            "extra_arguments": options.extra.split(),
        },
    }  # fmt: skip


def main() -> int:
    options = parse()
    # SGLang keeps image embeddings by picture through flushes: too few to help a later case.
    os.environ["SGLANG_VLM_CACHE_SIZE_MB"] = "256"
    counts = [int(part) for part in options.concurrent.split(",")]  # in this order
    cases = [
        Case(
            concurrent=count,
            turns=options.turns,
            rounds=options.rounds,
            # The bar on overhead is for the most concurrent case.
            repeats=options.repeats if count == max(counts) else max(1, options.repeats - 1),
        )
        for count in counts
    ]
    if options.long_turns:
        cases.append(Case(concurrent=options.long_concurrent, turns=options.long_turns, rounds=1, repeats=1))
    device = torch.device("cuda" if torch.cuda.is_available() and not options.tiny else "cpu")
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        folder = Path(scratch)
        make_folder("tiny" if options.tiny else options.size, folder / "model", device)
        if device.type == "cuda":
            torch.cuda.empty_cache()
        config = settings(options, max(case.turns for case in cases))
        policy = PolicyProcess(
            model=folder / "model", config=config, folder=folder / "policy", tiny=options.tiny
        )
        with ThreadPoolExecutor(1) as starter:
            starting = starter.submit(policy.__enter__)
            try:
                plan, load = draw_screens(options, cases, folder)
                starting.result()
                figures = run(options, cases, policy, replace(plan, policy_url=policy.url), load)
            except Exception:
                print(policy.tail(8000), flush=True)
                raise
            finally:
                if not starting.exception():
                    policy.close()
    worst_hit = min(row["hit_rate"] for row in figures["cases"])
    overhead = max(row["overhead"] for row in figures["cases"] if row["concurrent"] == max(counts))
    passed = worst_hit >= MIN_HIT_RATE and overhead <= MAX_OVERHEAD
    return finish("rollout_throughput", figures, passed=passed, results=options.results)


def run(
    options: argparse.Namespace, cases: list[Case], policy: PolicyProcess, plan: Plan, load: Load
) -> dict[str, Any]:
    """All cases; a failing one does not stop the others."""
    described = policy.ask("GET", "/engine")
    plan = replace(plan, server_urls=tuple(server["url"] for server in described["servers"]))
    for pixels in Path(plan.screens).glob("*.npy"):
        shutil.move(pixels, described["image_folder"])
    print(f"ready after {policy.start_s:.0f} s", flush=True)
    renderer = Renderer.from_folder(plan.model, ModelConfig(**PIXELS), PromptConfig(style=STYLE))
    first = renderer.render_turn(0, "", None, instruction="")
    wait_for(options.wait_for)
    rows, failures = [], []
    try:
        warm_up = Case(concurrent=cases[0].concurrent, turns=2, rounds=1, repeats=1)
        measure(warm_up, load, plan, policy, len(first))
        for case in cases:
            if options.until_s and time.monotonic() - STARTED > options.until_s:
                failures.append(f"{case}: left out, {options.until_s:.0f} s are over")
                continue
            try:
                rows.append(measure(case, load, plan, policy, len(first)))
            except Exception as error:  # noqa: BLE001 - the other cases are worth having
                failures.append(f"{case}: {error!r}"[:500])
                print(failures[-1], flush=True)
    finally:
        load.close()
    print_table(
        ["at once", "turns", "turns/s", "SGLang", "overhead", "p50 s", "p95 s", "hits", "share", "ceiling"],
        [
            [row["concurrent"], row["turns"], f"{row['turns_per_s']:.1f}", f"{row['direct_turns_per_s']:.1f}",
             f"{row['overhead']:.1%}", f"{row['turn_p50_s']:.2f}", f"{row['turn_p95_s']:.2f}",
             f"{row['hit_rate']:.1%}", f"{row['cached_share']:.1%}", f"{row['cached_share_ceiling']:.1%}"]
            for row in rows
        ],
    )  # fmt: skip
    if not rows:
        raise RuntimeError(f"no case went through: {failures}")
    return {
        "command": " ".join(["python -m benchmarks.gpu.rollout_throughput", *sys.argv[1:]]),
        "gpu": gpu_name(),
        "size": options.size,
        "versions": versions(policy),
        "start_s": policy.start_s,
        "cases": rows,
        "failures": failures,
    }


def gpu_name() -> str:
    if not torch.cuda.is_available():
        return "none"
    memory = torch.cuda.get_device_properties(0).total_memory / 1e9
    cores = len(os.sched_getaffinity(0))
    return f"1x {torch.cuda.get_device_name(0)} ({memory:.0f} GB), {cores} cores"


def parse() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--size", default="2b")
    arguments.add_argument("--concurrent", default="8,32,64")
    arguments.add_argument("--turns", type=int, default=8)
    arguments.add_argument("--completion", type=int, default=48, help="tokens of a completion")
    arguments.add_argument("--rounds", type=int, default=1, help="trajectories per concurrent place")
    arguments.add_argument("--repeats", type=int, default=2, help="of the most concurrent case, both ways")
    arguments.add_argument("--long-turns", type=int, default=0, help="one more case with so many turns")
    arguments.add_argument("--long-concurrent", type=int, default=32)
    arguments.add_argument("--servers", type=int, default=1)
    arguments.add_argument("--memory-fraction", type=float, default=0.8)
    arguments.add_argument("--attention-backend", default="triton")
    arguments.add_argument("--extra", default="", help="further arguments of SGLang")
    arguments.add_argument("--scratch", default=None)
    arguments.add_argument("--until-s", type=float, default=0, help="begin no case later than this")
    arguments.add_argument("--wait-for", type=Path, help="measure when this file exists")
    arguments.add_argument("--results", type=Path, default=RESULTS / "gpu")
    arguments.add_argument("--tiny", action="store_true", help="try this program on a CPU with a stand-in")
    return arguments.parse_args()


if __name__ == "__main__":
    sys.exit(main())
