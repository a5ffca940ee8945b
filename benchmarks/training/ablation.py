"""Ablations on first-desk: which algorithm, with replay or without; and what void turns earn.

`--study algorithms`: GRPO or GSPO, with replay or without, in turns or two steps ahead. Replay means: oracle
demonstrations of the tasks that the run practises are accepted beforehand, and stand in when a whole group
fails. Staleness 2 is taken with the clip against the engine alone, and with the decoupled objective.
`--study void_turns`: how turns without an action are trained on, and whether a score counts that the agent
reached but did not end; also under the rewards of two other presets.
`--study credit`: advantages by trajectory, by shared states, and by branches, on menus of up to five turns.

Every arm takes the same number of steps of the same number of trajectories on real desktops, from the shipped
start. Each run has an installation of its own (real Redis, workers, desktops). --parallel N runs that many at
once, each on its share of the cores: staleness is real only with about as many desktops as trajectories per
step; the result has what it was. --resume goes on where an interrupted benchmark stopped.

Bar: every run finishes; of the algorithms, every arm ends above its start (95 % intervals apart); branches
come to 80 % held-out success after fewer steps and desktop-seconds than GRPO in every seed.

    python -m benchmarks.training.ablation [--study void_turns] [--parallel 18] [--steps 40] [--seeds 0 1]
    [--arms grpo gspo] [--tiny] [--resume]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from benchmarks.finished_runs import FinishedRuns, add_resume
from benchmarks.report import RESULTS, print_table
from benchmarks.training import ablation_credit
from benchmarks.training.ablation_arms import STUDIES
from benchmarks.training.ablation_runs import Budget, pooled, run_once
from benchmarks.training.learning_curves_picture import draw
from benchmarks.training.side_by_side import cores_of

HEADER = (
    *("arm", "seeds", "greedy before", "after", "sampled before", "after"),
    *("solved greedily", "worst seed", "truncated", "unparsable", "entropy", "s per step", "bar"),
)
LAST_STEPS = 5
"""Of the entropy at the end."""
TINY = Budget(steps=2, groups=1, tasks=3, limit_s=1200.0)


def main() -> int:
    options = parse()
    started = time.monotonic()
    budget = TINY if options.tiny else Budget(options.steps, options.groups, options.tasks, options.limit_s)
    results = options.results or (Path(tempfile.mkdtemp()) if options.tiny else RESULTS)
    study = STUDIES[options.study]
    name = "ablation" if options.study == "algorithms" else f"ablation_{options.study}"
    runs = FinishedRuns(name=name, budget=asdict(budget), resume=options.resume, results=results)
    todo: SimpleQueue[tuple[str, int]] = SimpleQueue()
    for seed in options.seeds:  # a whole set of arms before the next seed, should time run out
        for arm in options.arms:
            todo.put((arm, seed))
    found: list[dict[str, Any]] = []

    def work(place: int) -> None:
        cores = cores_of(place, options.parallel)
        while time.monotonic() - started < options.budget_s:
            try:
                arm, seed = todo.get_nowait()
            except Empty:
                return
            run = runs.once({"arm": arm, "seed": seed}, partial(run_once, study[arm], seed, budget, cores))
            found.append(run)
            print(f"{time.monotonic() - started:6.0f} s  {line_of(run)}", flush=True)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(options.parallel)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return report(runs, found, options)


def parse() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--study", choices=list(STUDIES), default="algorithms")
    arguments.add_argument("--arms", nargs="+", help="of the study; all of them by default")
    arguments.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    arguments.add_argument("--steps", type=int, default=40)
    arguments.add_argument("--groups", type=int, default=6, help="of 8 trajectories per step")
    arguments.add_argument("--tasks", type=int, default=72, help="held-out tasks of an evaluation")
    arguments.add_argument("--parallel", type=int, default=1, help="runs at once")
    arguments.add_argument("--limit-s", type=float, default=3600.0, help="of one run")
    arguments.add_argument("--budget-s", type=float, default=1e9, help="no run is started after so long")
    arguments.add_argument("--results", type=Path, help="folder of the result file")
    add_resume(arguments)
    arguments.add_argument("--tiny", action="store_true", help="two steps of everything, no bar")
    options = arguments.parse_args()
    known = list(STUDIES[options.study])
    options.arms = options.arms or known
    if unknown := set(options.arms) - set(known):
        arguments.error(f"--arms: {', '.join(sorted(unknown))}: {options.study} has {', '.join(known)}")
    return options


def report(runs: FinishedRuns, found: list[dict[str, Any]], options: argparse.Namespace) -> int:
    finished = [run for run in found if run["status"] == "finished"]
    is_whole = len(finished) == len(options.arms) * len(options.seeds)
    if options.study == "credit" and not options.tiny:
        return report_credit(runs, finished, is_whole)
    arms = [arm_of(name, [run for run in finished if run["arm"] == name]) for name in options.arms]
    arms = [arm for arm in arms if arm["runs"]]
    print_table(HEADER, [row_of(arm) for arm in arms])
    if options.tiny:
        print("tiny: every run finished" if is_whole else "tiny: a run did not finish")
    if options.tiny or options.study != "algorithms":
        return runs.finish(passed=is_whole, arms=arms)
    status = runs.finish(passed=is_whole and all(arm["passed"] for arm in arms), arms=arms)
    draw(finished, "ablation")
    return status


def report_credit(runs: FinishedRuns, finished: list[dict[str, Any]], is_whole: bool) -> int:
    names = dict.fromkeys(run["arm"] for run in finished)
    arms = {name: ablation_credit.arm_of(name, finished) for name in names}
    print_table(ablation_credit.HEADER, [ablation_credit.row_of(arm) for arm in arms.values()])
    branches, plain = arms.get("branches"), arms.get(ablation_credit.PLAIN)
    quicker = bool(branches and plain and ablation_credit.is_quicker(branches, plain))
    status = runs.finish(passed=is_whole and quicker, arms=list(arms.values()))
    draw(finished, "ablation_credit")
    return status


def arm_of(name: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """All seeds of an arm pooled: success with its 95 % interval before and after, greedy and sampled."""
    ended = [run for run in runs if run["before_greedy"] and run["after_greedy"]]
    arm = {when: pooled(ended, when) for when in ("before", "after", "before_greedy", "after_greedy")}
    pairs = (("before", "after"), ("before_greedy", "after_greedy"))
    return {
        "arm": name,
        "runs": len(ended),
        **arm,
        "by_seed": {run["seed"]: run["after_greedy"]["success"] for run in ended},
        "solved_by_seed": {run["seed"]: run["after_greedy"]["solved"] for run in ended},
        **at_the_end(ended),
        "step_s": sum(run["step_s"] for run in ended) / len(ended) if ended else None,
        "passed": bool(ended) and all(arm[after]["low"] > arm[before]["high"] for before, after in pairs),
    }


def at_the_end(runs: list[dict[str, Any]]) -> dict[str, float]:
    """How the last evaluations' trajectories ended, greedy and sampled, and how sure the policy was."""
    last = [run[name] for run in runs for name in ("after_greedy", "after")]
    tails = [run["curves"]["loss/entropy"][-LAST_STEPS:] for run in runs]
    entropies = [sum(value for _, value in tail) / len(tail) for tail in tails if tail]
    return {
        "truncated_at_end": _mean([found["truncated_share"] for found in last]),
        "unparsable_at_end": _mean([found["unparsable_share"] for found in last]),
        "entropy_at_end": max(entropies, default=0.0),
    }


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def row_of(arm: dict[str, Any]) -> tuple[object, ...]:
    shares = [percent(arm[name]) for name in ("before_greedy", "after_greedy", "before", "after")]
    solved = arm["solved_by_seed"].values()
    ends = [f"{value:.0%}" for value in (_mean(list(solved)), min(solved, default=0.0))]
    ends += [f"{arm[f'{name}_at_end']:.1%}" for name in ("truncated", "unparsable")]
    bar = "met" if arm["passed"] else "MISSED"
    step_s = f"{arm['step_s']:.1f}"
    return (arm["arm"], arm["runs"], *shares, *ends, f"{arm['entropy_at_end']:.3f}", step_s, bar)


def percent(found: dict[str, Any]) -> str:
    return f"{found['success']:.0%} [{found['low']:.0%}, {found['high']:.0%}] n={found['num_samples']}"


def line_of(run: dict[str, Any]) -> str:
    after = f"{run['after']['success']:.0%}" if run["after"] else run["message"][-300:]
    return f"{run['arm']} seed {run['seed']}: {run['status']}, step {run['step']}, after {after}"


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
