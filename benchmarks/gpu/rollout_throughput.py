"""How many turns a second does the whole path draw, and what does the policy server cost?

Env worker's client -> policy server (HTTP) -> SGLang, Qwen3-VL of true dimensions with random weights, drawn
screens at 1312x736 that differ in every turn, no desktops: turns follow each other at once. Groups of eight
siblings share the first screen, as GRPO's do. Two peers in the same run, in turn with ours, caches flushed in
between (`benchmarks.gpu.rollout_load`):

- direct: SGLang alone, as its users call it. It gets token ids and PNGs and decodes every image of every
  request; a round begins no turn after 4 s, which leaves it the short contexts.
- direct_ready: SGLang by our own request form, all screens decoded beforehand. Nobody can call it so without
  doing what the policy server does; it shows the policy server's share alone.

Load generators and servers run on cores of their own. Hit rate: cached tokens of all tokens that a server had
already been sent (earlier turns, the siblings' first turn, the common system prompt). The plain share of all
prompt tokens stands beside it; its ceiling follows from the number of turns.

Bars, worst case of all: hit rate >= 85 %; overhead <= 5 % (turns/s against direct, which the long case is not
measured with; against direct_ready when direct failed).

    python -m benchmarks.gpu.rollout_throughput [--size 2b] [--concurrent 64,32,8] [--turns 8] [--tiny]
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
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import torch

from benchmarks.gpu.models import make_folder
from benchmarks.gpu.policy_process import PolicyProcess
from benchmarks.gpu.rollout_case import Case, Row, play, same_tokens, talks_of
from benchmarks.gpu.rollout_load import Load, Plan, Way, hash_of
from benchmarks.report import RESULTS, finish, print_table
from testing.training.sglang_client import Sglang
from training.contracts.config import ModelConfig, PromptConfig
from training.render.renderer import Renderer
from training.sampler.sglang import server_endpoints
from training.sampler.sglang.server_endpoints import server_info

MIN_HIT_RATE = 0.85
MAX_OVERHEAD = 0.05
PIXELS = {"min_pixels": 65_536, "max_pixels": 1_048_576}
STYLE = "computer-use"
STARTED = time.monotonic() - (time.time() - psutil.Process().create_time())
"""Imports count, too."""
NUM_CORES = len(os.sched_getaffinity(0))
"""Of load generators and servers together, before they are parted."""
ORDERS: tuple[tuple[Way, ...], ...] = (
    ("policy", "direct_ready", "direct"),
    ("direct_ready", "policy"),
    ("policy", "direct_ready"),
)
"""Of the rounds of each repeat; way direct is far slower, once says enough."""


def draw_screens(
    options: argparse.Namespace, cases: list[Case], folder: Path, cores: set[int]
) -> tuple[Plan, Load]:
    """PNGs for the clients, and pixels for the direct requests, while the server starts."""
    started = time.monotonic()
    screens = folder / "screens"
    screens.mkdir()
    plan = Plan(
        policy_url="", server_urls=(), screens=str(screens), model=str(folder / "model"), pixels=PIXELS,
        style=STYLE, max_tokens=4 if options.tiny else options.completion,
        size=(160, 96) if options.tiny else (1312, 736),
    )  # fmt: skip
    load = Load(min(8, len(cores)), plan, cores)
    names = sorted({picture for case in cases for talk in talks_of(case, "") for picture in talk.pictures})
    load.draw([(name, number) for number, name in enumerate(names)], plan)
    assert len({hash_of(name)[:16] for name in names}) == len(names), "pictures need hashes of their own"
    print(f"{len(names)} screens drawn in {time.monotonic() - started:.0f} s", flush=True)
    return plan, load


def share_cores() -> tuple[set[int], set[int]]:
    """(cores of the load generators, cores of the servers); this process moves to the latter."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 6:
        return set(cores), set(cores)
    count = len(cores) // 3
    os.sched_setaffinity(0, cores[count:])
    return set(cores[:count]), set(cores[count:])


def versions(policy: PolicyProcess) -> dict[str, str]:
    """Of what the two sides run."""
    found = {name: importlib.metadata.version(name) for name in ("torch", "transformers")}
    url = policy.ask("GET", "/engine")["servers"][0]["url"]
    try:
        with Sglang(url) as server:
            found["sglang"] = str(server.run(server_info()).get("version"))
    except server_endpoints.SglangError:
        found["sglang"] = "stand-in"
    return found


def settings(options: argparse.Namespace, longest: int) -> dict[str, Any]:
    """The experiment config of the policy server."""
    return {
        "model": {
            "dtype": "float32" if options.tiny else "bfloat16",
            "fp32_logits": not options.bf16_logits,
            **PIXELS,
        },
        "prompt": {"style": STYLE},
        "sampling": {"max_context_tokens": max(4096, longest * 1200 + 2048)},
        "engine": {
            "name": "sglang", "servers": options.servers, "memory_fraction": options.memory_fraction,
            "attention_backend": options.attention_backend, "start_timeout_s": 400, "max_restarts": 0,
            "extra_arguments": options.extra.split(),
        },
    }  # fmt: skip


def main() -> int:
    options = parse()
    # SGLang keeps image embeddings by picture through flushes: too few to help a later case.
    os.environ["SGLANG_VLM_CACHE_SIZE_MB"] = "256"
    load_cores, _ = share_cores()
    cases = [Case(concurrent=int(part), turns=options.turns) for part in options.concurrent.split(",")]
    if options.long_turns:
        cases.append(Case(concurrent=options.long_concurrent, turns=options.long_turns))
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
                plan, load = draw_screens(options, cases, folder, load_cores)
                starting.result()
                figures = run(options, cases, policy, replace(plan, policy_url=policy.url), load)
            except Exception:
                print(policy.tail(8000), flush=True)
                raise
            finally:
                if not starting.exception():
                    policy.close()
    return finish("rollout_throughput", figures, passed=verdict(figures), results=options.results)


def verdict(figures: dict[str, Any]) -> bool:
    """Whether every case meets both bars."""
    rows = figures["cases"]
    overheads = [row["overhead"] for row in rows if "overhead" in row]
    overheads = overheads or [row["overhead_ready"] for row in rows]
    return min(row["hit_rate"] for row in rows) >= MIN_HIT_RATE and max(overheads) <= MAX_OVERHEAD


def run(
    options: argparse.Namespace, cases: list[Case], policy: PolicyProcess, plan: Plan, load: Load
) -> dict[str, Any]:
    """All rounds that there is time for."""
    described = policy.ask("GET", "/engine")
    plan = replace(plan, server_urls=tuple(server["url"] for server in described["servers"]))
    for pixels in Path(plan.screens).glob("*.npy"):
        shutil.move(pixels, described["image_folder"])
    print(f"ready after {policy.start_s:.0f} s", flush=True)
    rounds = Rounds(options, cases, policy, plan, load)
    try:
        rounds.play_all()
    finally:
        load.close()
    figures = rounds.figures
    if not figures["cases"]:
        raise RuntimeError(f"no case went through: {figures['failures']}")
    table(figures["cases"])
    figures["strict_passed"] = max(row["overhead_ready"] for row in figures["cases"]) <= MAX_OVERHEAD
    return figures


class Rounds:
    """All rounds of all cases; a failing one does not stop the others."""

    def __init__(
        self, options: argparse.Namespace, cases: list[Case], policy: PolicyProcess, plan: Plan, load: Load
    ) -> None:
        renderer = Renderer.from_folder(plan.model, ModelConfig(**PIXELS), PromptConfig(style=STYLE))
        self.system_tokens = len(renderer.render_turn(0, "", None, instruction=""))
        self.options, self.policy, self.plan, self.load = options, policy, plan, load
        self.rows = [Row(case=case) for case in cases]
        self.figures: dict[str, Any] = {
            "command": " ".join(["python -m benchmarks.gpu.rollout_throughput", *sys.argv[1:]]),
            "gpu": gpu_name(),
            "size": options.size,
            "versions": versions(policy),
            "start_s": policy.start_s,
            "cases": [],
            "failures": [],
        }

    def play_all(self) -> None:
        """Each repeat goes through all cases, so that time that runs out costs repeats, not cases."""
        self.options.results.mkdir(parents=True, exist_ok=True)
        most = max(row.case.concurrent for row in self.rows)
        self.attempt(Row(case=Case(concurrent=most, turns=2)), "policy")
        self.attempt(Row(case=Case(concurrent=min(8, most), turns=2)), "direct")
        self.figures["same_tokens"] = compared(self.load, self.plan, self.figures["failures"])
        for repeat in range(self.options.repeats):
            for row in self.rows:
                is_long = row.case.turns > self.options.turns
                if is_long and repeat < self.options.repeats - 1:
                    continue
                for way in ORDERS[2] if is_long else ORDERS[repeat % len(ORDERS)]:
                    self.attempt(row, way)

    def attempt(self, row: Row, way: Way) -> None:
        """One round, if there is time; what is known is written down after each."""
        now, limit = time.monotonic() - STARTED, self.options.until_s
        failures = self.figures["failures"]
        if limit and now + row.expected_s(way) > limit:
            failures.append(f"{row.case} {way}: left out, {limit - now:.0f} s were left")
            return
        try:
            play(row, way, self.load, self.plan, self.policy, self.system_tokens)
        except Exception as error:  # noqa: BLE001 - the other rounds are worth having
            failures.append(f"{row.case} {way}: {error!r}"[:500])
            print(failures[-1], flush=True)
            return
        told: dict[str, Any] = {"at_s": round(now), "took_s": round(row.seconds[way], 1), "way": way}
        told |= {"case": str(row.case), "rate": row.rates[way][-1]}
        print(json.dumps(told), flush=True)
        whole = [one for one in self.rows if one.rates["policy"] and one.rates["direct_ready"]]
        self.figures["cases"] = [one.figures() for one in whole]
        partial = self.options.results / "rollout_throughput.partial.json"
        partial.write_text(json.dumps(self.figures, indent=1))


def compared(load: Load, plan: Plan, failures: list[str]) -> dict[str, Any]:
    """The greedy comparison, which the figures can do without."""
    try:
        found = same_tokens(load, plan, turns=2)
    except Exception as error:  # noqa: BLE001 - the rounds are worth having
        failures.append(f"same tokens: {error!r}"[:500])
        return {}
    print(json.dumps({"same_tokens": found}), flush=True)
    return found


def table(rows: list[dict[str, Any]]) -> None:
    def of(row: dict[str, Any], name: str, form: str) -> str:
        return format(row[name], form) if name in row else "-"

    columns = (
        ("at once", "concurrent", "d"), ("turns", "turns", "d"), ("turns/s", "turns_per_s", ".1f"),
        ("direct", "direct_turns_per_s", ".1f"), ("overhead", "overhead", ".1%"),
        ("ready", "direct_ready_turns_per_s", ".1f"), ("overhead", "overhead_ready", ".1%"),
        ("p50 s", "turn_p50_s", ".2f"), ("ready s", "direct_ready_p50_s", ".2f"),
        ("p95 s", "turn_p95_s", ".2f"), ("hits", "hit_rate", ".1%"), ("share", "cached_share", ".1%"),
        ("ceiling", "cached_share_ceiling", ".1%"),
    )  # fmt: skip
    print_table(
        [title for title, _, _ in columns],
        [[of(row, name, form) for _, name, form in columns] for row in rows],
    )


def gpu_name() -> str:
    if not torch.cuda.is_available():
        return "none"
    memory = torch.cuda.get_device_properties(0).total_memory / 1e9
    return f"1x {torch.cuda.get_device_name(0)} ({memory:.0f} GB), {NUM_CORES} cores"


def parse() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--size", default="2b")
    arguments.add_argument("--concurrent", default="64,32,8", help="trajectories at once, in this order")
    arguments.add_argument("--turns", type=int, default=8)
    arguments.add_argument("--completion", type=int, default=48, help="tokens of a completion")
    arguments.add_argument("--repeats", type=int, default=3, help="of each case")
    arguments.add_argument("--long-turns", type=int, default=0, help="one more case with so many turns")
    arguments.add_argument("--long-concurrent", type=int, default=32)
    arguments.add_argument("--servers", type=int, default=1)
    arguments.add_argument("--memory-fraction", type=float, default=0.8)
    arguments.add_argument("--attention-backend", default="triton")
    arguments.add_argument("--bf16-logits", action="store_true", help="SGLang's head without fp32 logits")
    arguments.add_argument("--extra", default="", help="further arguments of SGLang")
    arguments.add_argument("--scratch", default=None)
    arguments.add_argument("--until-s", type=float, default=0, help="begin nothing that would end later")
    arguments.add_argument("--results", type=Path, default=RESULTS / "gpu")
    arguments.add_argument("--tiny", action="store_true", help="try this program on a CPU with a stand-in")
    return arguments.parse_args()


if __name__ == "__main__":
    sys.exit(main())
