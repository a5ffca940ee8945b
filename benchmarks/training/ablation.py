"""Ablation on first-desk: which algorithm, with replay or without, with TIS or without, at a fixed budget.

Every arm takes the same number of steps of the same number of trajectories on real desktops, with three
seeds. Most start from the shipped warm start, of which hardly a whole group of eight fails: replay would
never be asked. So replay is compared from a cold start, a warm-up that was stopped early. TIS (truncated
importance sampling of the trainer/engine ratio) is compared at staleness 2, because without staleness engine
and trainer agree and it changes nothing. Replay means: oracle demonstrations of the tasks that the run
practises are accepted beforehand, and stand in when a whole group fails.

Each run has an installation of its own (real Redis, workers, desktops). --parallel N runs so many at once,
each on its share of the cores. Runs that --record holds already are not repeated; --cold names the folder of
the cold start, which is made when it is not there (about six minutes on two cores).

Bar: every run finishes, and every arm ends above its start (its 95 % interval beyond the start's).

    python -m benchmarks.training.ablation [--parallel 18] [--steps 40] [--seeds 0 1] [--arms grpo gspo]
    [--tiny]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from benchmarks.report import finish, print_table
from benchmarks.training.ablation_cold_start import make_cold
from benchmarks.training.ablation_runs import ARMS, Budget, cores_of, is_cold, run_once
from training.rollouts.held_out_success import wilson_interval

HEADER = ("arm", "seeds", "before", "after", "after, by seed", "seconds per step", "bar")
TINY = Budget(steps=2, groups=1, tasks=3, limit_s=1200.0)
COLD_STEPS = 400
"""Of warm-up: about a third of the trajectories succeed, hardly any of the family `colour`."""
COLD_STEPS_TINY = 6


def main() -> int:
    options = parse()
    started = time.monotonic()
    budget = budget_of(options)
    runs = known(options.record)
    todo: SimpleQueue[tuple[str, int]] = SimpleQueue()
    for seed in options.seeds:  # a whole set of arms before the next seed, should time run out
        for arm in options.arms:
            if not any(run["arm"] == arm and run["seed"] == seed for run in runs):
                todo.put((arm, seed))
    lock = threading.Lock()

    def work(place: int) -> None:
        cores = cores_of(place, options.parallel)
        while time.monotonic() - started < options.budget_s:
            try:
                arm, seed = todo.get_nowait()
            except Empty:
                return
            found = run_once(arm, seed, budget, cores)
            with lock:
                runs.append(found)
                print(f"{time.monotonic() - started:6.0f} s  {line_of(found)}", flush=True)
                if options.record:
                    options.record.write_text(json.dumps(runs, indent=1))

    threads = [threading.Thread(target=work, args=(place,)) for place in range(options.parallel)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return report(runs, options, budget)


def budget_of(options: argparse.Namespace) -> Budget:
    """What every run may use; makes the cold start when an arm needs it."""
    budget = TINY if options.tiny else Budget(options.steps, options.groups, options.tasks, options.limit_s)
    if not any(is_cold(arm) for arm in options.arms):
        return budget
    steps = COLD_STEPS_TINY if options.tiny else COLD_STEPS
    return replace(budget, cold=make_cold(options.cold, steps, options.limit_s))


def parse() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--arms", nargs="+", choices=list(ARMS), default=list(ARMS))
    arguments.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    arguments.add_argument("--steps", type=int, default=40)
    arguments.add_argument("--groups", type=int, default=6, help="of 8 trajectories per step")
    arguments.add_argument("--tasks", type=int, default=72, help="held-out tasks of an evaluation")
    arguments.add_argument("--parallel", type=int, default=1, help="runs at once")
    arguments.add_argument("--limit-s", type=float, default=1200.0, help="of one run")
    arguments.add_argument("--budget-s", type=float, default=1e9, help="no run is started after so long")
    arguments.add_argument("--record", type=Path, help="runs that are done, read and written")
    cold = Path(tempfile.gettempdir()) / "deskhand-ablation-cold"
    arguments.add_argument("--cold", type=Path, default=cold, help="model folder of the cold start")
    arguments.add_argument("--tiny", action="store_true", help="two steps of everything, no bar")
    return arguments.parse_args()


def known(record: Path | None) -> list[dict[str, Any]]:
    """Finished runs of an earlier call."""
    if record is None or not record.exists():
        return []
    return [run for run in json.loads(record.read_text()) if run["status"] == "finished"]


def report(runs: list[dict[str, Any]], options: argparse.Namespace, budget: Budget) -> int:
    arms = [arm_of(name, [run for run in runs if run["arm"] == name]) for name in ARMS]
    arms = [arm for arm in arms if arm["runs"]]
    print_table(HEADER, [row_of(arm) for arm in arms])
    wanted = len(options.arms) * len(options.seeds)
    complete = sum(run["status"] == "finished" for run in runs) >= wanted
    if options.tiny:
        print("tiny: every run finished" if complete else "tiny: a run did not finish")
        return 0 if complete else 1
    figures = {
        "budget": {"steps": budget.steps, "groups": budget.groups, "trajectories_per_group": 8},
        "parallel": options.parallel,
        "arms": arms,
        "runs": runs,
        "incomplete": not complete,
    }
    return finish("ablation", figures, passed=complete and all(arm["passed"] for arm in arms))


def arm_of(name: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """All seeds of an arm pooled: success with its 95 % interval before and after."""
    ended = [run for run in runs if run["status"] == "finished" and run["before"] and run["after"]]
    before, after = pooled(ended, "before"), pooled(ended, "after")
    return {
        "arm": name,
        "runs": len(ended),
        "before": before,
        "after": after,
        "by_seed": {run["seed"]: run["after"]["success"] for run in ended},
        "step_s": sum(run["step_s"] for run in ended) / len(ended) if ended else None,
        "passed": bool(ended) and after["low"] > before["high"],
    }


def pooled(runs: list[dict[str, Any]], name: str) -> dict[str, Any]:
    wins = sum(run[name]["num_success"] for run in runs)
    tasks = sum(run[name]["num_tasks"] for run in runs)
    low, high = wilson_interval(wins, tasks)
    return {"success": wins / tasks if tasks else 0.0, "low": low, "high": high, "num_tasks": tasks}


def row_of(arm: dict[str, Any]) -> tuple[object, ...]:
    seeds = ", ".join(f"{value:.0%}" for _, value in sorted(arm["by_seed"].items()))
    bar = "met" if arm["passed"] else "MISSED"
    step_s = f"{arm['step_s']:.1f}"
    return (arm["arm"], arm["runs"], percent(arm["before"]), percent(arm["after"]), seeds, step_s, bar)


def percent(found: dict[str, Any]) -> str:
    return f"{found['success']:.0%} [{found['low']:.0%}, {found['high']:.0%}] n={found['num_tasks']}"


def line_of(run: dict[str, Any]) -> str:
    after = f"{run['after']['success']:.0%}" if run["after"] else run["message"]
    return f"{run['arm']} seed {run['seed']}: {run['status']}, step {run['step']}, after {after}"


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
