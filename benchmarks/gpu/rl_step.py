"""A whole RL step, measured: trajectories per GPU-hour, and how busy trainer and engine are.

    python -m benchmarks.gpu.rl_step [--size 8b] [--splits 4+4 6+2] [--staleness 0 1] [--tiny]
    python -m benchmarks.gpu.rl_step --only qwen3 qwen2_5_vl qwen3_5 --splits 3+1 --staleness 0

The real trainer (FSDP2), the real policy server with one SGLang server per GPU, weights over NCCL
after every step; Qwen3-VL of true dimensions with random weights, or with --only a model of each of these
other families. Desktops are recorded: each turn is answered with the next screen (1312 x 736; for a model
without eyes a list of widgets) after `--latency` seconds, no machine runs. A trajectory has eight
turns of `--completion` tokens; a step has eight trajectories per GPU of the trainer.

Arms: `in turns` (staleness 0: generate, train, sync) and staleness K (groups of the next K steps are
generated while this one trains). A split N+M gives N GPUs to the trainer and M to the engine; `N+M,
colocated` (write N@M) lets M servers share the trainer's N: they sleep while it computes, or, when an arm of
the run samples ahead, stay awake in all. --better adds the split that the first arm's times promise most of,
with what --staleness has above 0. The first 1 + K steps do not count: one compiles, K are ready meanwhile.

Bars: weight sync <= 2 s (median of the measured steps) in every arm, none by disk; at staleness 1 both sides
busy >= 85 % of the time on the better split of GPUs (`benchmarks.gpu.rl_step_figures` says what is counted;
where both share a GPU, being busy only says that they wait for each other's kernels).
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.gpu.recorded_world import make_tasks
from benchmarks.gpu.rl_step_arm import Arm, Runner, Scale, starting
from benchmarks.gpu.rl_step_options import COMPLETION, parse, scale_of, sizes_of
from benchmarks.gpu.rl_step_screens import Screens, draw_screens
from benchmarks.gpu.rl_step_world import PlayedWorld
from benchmarks.gpu.sizes import OTHER_FAMILIES
from benchmarks.report import finish, of_this_tree, print_table, stamp

SHOWN = (
    ("step s", "step_s", ".2f"), ("train s", "train_s", ".2f"), ("wait s", "wait_s", ".2f"),
    ("sync s", "sync_s", ".2f"), ("traj/GPU-h", "trajectories_per_gpu_hour", ".0f"),
    ("turns/s", "turns_per_s", ".1f"), ("tokens/s", "tokens_per_s", ".0f"),
    ("trainer", "trainer_busy", ".1%"), ("engine", "engine_busy", ".1%"), ("MFU", "mfu", ".1%"),
    ("gap nats", "logprob_gap", ".1e"),
)  # fmt: skip
VERSIONS = ("torch", "transformers", "sglang")


@dataclass(frozen=True, kw_only=True, slots=True)
class Bars:
    """What an arm must keep; a try on a CPU keeps no times."""

    sync_s: float = 2.0
    busy: float = 0.85


def main() -> int:
    options = parse()
    recorded = _earlier(options.results)
    found = of_this_tree(recorded) if options.resume else {}
    for size in sizes_of(options):
        for figures in run_size(options, size):
            words = "" if options.completion == COMPLETION else f", {options.completion} tokens a turn"
            found[f"{size}: {figures['arm']}{words}"] = figures | about() | stamp()
            _save(options.results, recorded | found)
    done = {name: row for name, row in found.items() if "error" not in row}
    rows = [
        [name, *(format(row[key], form) for _, key, form in SHOWN), row["commit"], row["date"]]
        for name, row in done.items()
    ]
    print_table(["arm", *(title for title, _, _ in SHOWN), "commit", "measured"], rows)
    bars = Bars(sync_s=float("inf"), busy=0.0) if options.tiny else Bars()
    problems = problems_of(found, bars)
    for words in problems:
        print(f"MISSED: {words}")
    figures = {"bars": asdict(Bars()), "arms": recorded | found, "judged": list(found), "missed": problems}
    return finish("rl_step", figures, passed=bool(found) and not problems, results=options.results)


def run_size(options: argparse.Namespace, size: str) -> Iterator[dict[str, Any]]:
    """Figures of every arm of a model; what fails has an `error`, and the next model has its turn."""
    scale = scale_of(options, size)
    try:
        with tempfile.TemporaryDirectory(dir=options.scratch, prefix="rl-step-") as scratch:
            runner = Runner(
                scale=scale, model=Path(scratch) / "model", folder=Path(scratch), gpus=visible_gpus(options),
                steps=options.steps,
            )  # fmt: skip
            make_model(options, scale, runner.model)
            screens = prepare_screens(options, scale, Path(scratch) / "frames")
            yield from run_all(options, runner, screens)
    except Exception as error:  # noqa: BLE001 - the other models are worth having
        say(f"{size} failed: {error!r}")
        yield {"arm": "all", "error": repr(error)[-1500:]}


def run_all(options: argparse.Namespace, runner: Runner, screens: Screens) -> Iterator[dict[str, Any]]:
    """Figures of every arm; one that fails has an `error`. --better adds a split, chosen by the first arm."""
    deadline = time.monotonic() + options.limit
    first: dict[str, Any] | None = None
    for split in options.splits:
        for figures in run_split(options, runner, screens, arms_of(split, options.staleness), deadline):
            first = first or figures
            yield figures
    if not options.better or first is None or "error" in first:
        return
    more = better_split(first, parse_split(options.splits[0]))
    say(f"the better split should be {more}")
    if more not in options.splits:
        ahead = [staleness for staleness in options.staleness if staleness]
        yield from run_split(options, runner, screens, arms_of(more, ahead), deadline)


def run_split(
    options: argparse.Namespace, runner: Runner, screens: Screens, arms: Sequence[Arm], deadline: float
) -> Iterator[dict[str, Any]]:
    """The arms of one split, with one policy server."""
    policy = runner.policy(arms[0])
    scale = runner.scale
    with (
        PlayedWorld(
            policy=policy,
            tasks=make_tasks(64, scale.screen),
            recorded={},
            frames=screens.folder,
            screens=screens,
            num_turns=scale.turns,
            max_tokens=scale.max_tokens,
            latency_s=options.latency,
            shows=scale.shows,
        ) as world,
        starting(policy, world, is_colocated=arms[0].placement == "colocated"),
    ):
        for arm in arms:
            began = time.monotonic()
            say(f"{arm.name}: begins, {deadline - began:.0f} s are left")
            try:
                figures = runner.run(arm, world, deadline - began)
            except Exception as error:  # noqa: BLE001 - the other arms are worth having
                say(f"{arm.name} failed: {error}\n{policy.tail(2000)}")
                figures = {"arm": arm.name, "error": str(error)[-1500:]}
            figures["engine_start_s"] = policy.start_s
            say(f"{arm.name}: {json.dumps({k: v for k, v in figures.items() if k != 'by_step'})}")
            yield figures


def arms_of(split: str, staleness: Sequence[int]) -> list[Arm]:
    """One arm per bound."""
    return [replace(parse_split(split), staleness=one, is_awake=any(staleness)) for one in staleness]


def parse_split(words: str) -> Arm:
    """'4+4', or '8@8' for colocated. Raises ValueError."""
    mark = "@" if "@" in words else "+"
    trainers, engines = (int(part) for part in words.split(mark))
    return Arm(trainers=trainers, engines=engines, placement="colocated" if mark == "@" else "own")


def better_split(figures: dict[str, Any], arm: Arm) -> str:
    """The split with the most trajectories per second when both sides work at once, by times in turns.

    A step has as many trajectories per trainer GPU whatever the split: training takes as long, rollouts grow
    with the trainers and shrink with the engines.
    """
    total = arm.trainers + arm.engines

    def rate(trainers: int) -> float:
        rollouts = figures["wait_s"] * trainers / arm.trainers * arm.engines / (total - trainers)
        return trainers / (max(figures["train_s"], rollouts) + figures["sync_s"])

    best = max(range(1, total), key=rate)
    return f"{best}+{total - best}"


def problems_of(found: dict[str, dict[str, Any]], bars: Bars) -> list[str]:
    """What misses a bar."""
    missed = [f"{name}: {row['error'][:200]}" for name, row in found.items() if "error" in row]
    done = {name: row for name, row in found.items() if "error" not in row}
    for name, row in done.items():
        if row["sync_s"] > bars.sync_s:
            missed.append(f"{name}: a weight sync takes {row['sync_s']:.2f} s")
        if row["fell_back"]:
            missed.append(f"{name}: {row['fell_back']:.0f} syncs went by disk")
        if row["errors"]:
            missed.append(f"{name}: trajectories failed: {row['errors'][0]}")
    own = [row for row in done.values() if "colocated" not in row["arm"]]
    one_ahead = [row for row in own if row["arm"].endswith("staleness 1")]
    if one_ahead:
        best = max(one_ahead, key=lambda row: min(row["trainer_busy"], row["engine_busy"]))
        for side in ("trainer", "engine"):
            busy = best[f"{side}_busy"]
            if busy < bars.busy:
                missed.append(f"{best['arm']}: {side} busy {busy:.1%}, the bar is {bars.busy:.0%}")
    return missed


# --- surroundings ----------------------------------------------------------------------------------------


def make_model(options: argparse.Namespace, scale: Scale, folder: Path) -> None:
    """What trainer and engine start with."""
    if not options.tiny:
        subprocess.run([sys.executable, "-m", "benchmarks.gpu.models", scale.size, str(folder)], check=True)
        return
    from testing.training.tiny_families import make_family  # torch: not in each process that draws screens

    make_family(folder, scale.size if scale.size in OTHER_FAMILIES else "qwen3_vl")


def prepare_screens(options: argparse.Namespace, scale: Scale, folder: Path) -> Screens:
    """As many as the longest arm shows."""
    arms = [parse_split(split) for split in options.splits]
    most = max(arm.trainers + arm.engines - 1 if options.better else arm.trainers for arm in arms)
    steps = options.steps + 2 * (1 + max(options.staleness))
    count = steps * most * scale.groups_per_trainer * (1 + scale.group_size * (scale.turns - 1))
    return draw_screens(folder, count, scale.screen, 1 if options.tiny else min(32, os.cpu_count() or 1))


def visible_gpus(options: argparse.Namespace) -> list[str]:
    if options.tiny:
        return []
    from workers.gpu.gpu_placement import visible_gpus as of_host

    return of_host()


def about() -> dict[str, Any]:
    """GPUs, versions and command of this run."""
    from workers.gpu.nvml import open_gpus

    gpus = open_gpus()
    installed = {one.metadata["Name"] for one in importlib.metadata.distributions()}
    return {
        "gpus": [gpu["name"] for gpu in gpus.describe()] if gpus else [],
        "versions": {name: importlib.metadata.version(name) for name in VERSIONS if name in installed},
        "command": " ".join(["python -m benchmarks.gpu.rl_step", *sys.argv[1:]]),
    }


def say(words: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {words}", flush=True)


def _earlier(results: Path) -> dict[str, dict[str, Any]]:
    path = results / "rl_step.json"
    return json.loads(path.read_text())["figures"]["arms"] if path.exists() else {}


def _save(results: Path, found: dict[str, Any]) -> None:
    """What is known so far, should a later arm take the run down."""
    results.mkdir(parents=True, exist_ok=True)
    (results / "rl_step.json").write_text(json.dumps({"figures": {"arms": found}}))


if __name__ == "__main__":
    sys.exit(main())
