"""First desk: does the policy visibly learn by GRPO, and does it still end what it solves?

Starts private installations (real Redis, workers, desktops), launches the preset once per seed and number of
steps and reads what the product recorded. Also measures the blind policy (no screenshots) on the families
that need the pixels; with --from-scratch only the SFT stage of the from-scratch preset.

Solved means: full score, and ended by the agent. A seed is one run of the longest number of steps, evaluated
after each of `--steps`: the preset's rate is constant, so a shorter run is the beginning of a longer one.
Bar, in every seed, after 60 steps and after 120, over >= 60 held-out tasks, greedy and eight draws each:
greedy <= 55 % and sampled >= 15 % before, solved 60 points more greedily and 35 sampled after, >= 80 %
greedily, two families >= 30 points greedily; over both last evaluations at most 10 % of the trajectories
truncated and 2 % of the turns unparsable; entropy over the last five steps <= 0.1 nats. On two cores also:
launch to the end of the 60 steps <= 600 s where 2e7 turns of a Python loop take 2.5 s (`loop_s` is recorded).
From scratch: SFT reaches 25-60 % within 30 minutes. --resume goes on where an interrupted benchmark stopped.

    python -m benchmarks.training.first_desk [--seeds 0 1 2] [--steps 60 120] [--side-by-side 1]
    [--from-scratch] [--skip-blind] [--resume]
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
from functools import partial
from typing import Any

from benchmarks.finished_runs import FinishedRuns, add_resume
from benchmarks.gpu.smoldesk_figures import looks_of, passes_at
from benchmarks.report import print_table
from benchmarks.training.side_by_side import side_by_side
from testing.experiment_runs import evaluation, follow, launch, outcomes, seconds, settings
from testing.private_installation import Instance, InstanceFailed
from webapp.lib.supervisor.process_specs import SLOTS_PER_CORE

LAUNCH_LIMIT_S, LAUNCH_CORES = 600, 2
SCRATCH_LIMIT_S = 1800
SCRATCH = (0.25, 0.60)
MAX_GREEDY_BEFORE, MIN_SAMPLED_BEFORE = 0.55, 0.15
MIN_SOLVED, GREEDY_GAIN, SAMPLED_GAIN = 0.80, 0.60, 0.35
FAMILY_GAIN, FAMILIES_GAINED = 0.30, 2
MAX_TRUNCATED, MAX_UNPARSABLE, MAX_ENTROPY = 0.10, 0.02, 0.1
STEPS, LAST_STEPS = (60, 120), 5
DRAWS = 8
"""Of a task: pass@8 beside one draw says what GRPO may have sharpened and what it added."""
MIN_TASKS = 60
BLIND_LIMIT = 0.35
"""Chance on colour is the mean of 1/3 to 1/5; on menu 1/5 and less. The limit allows for 48 trials."""
POLL_S = 10.0
"""Between two looks at the experiment."""
CURVES = (
    *("rollout/success", "rollout/solved", "rollout/parse_error_rate", "rollout/truncation_rate"),
    *("loss/entropy", "optimiser/grad_norm", "time/step_s"),
)
HEADER = (
    *("seed", "steps", "launch to end of GRPO (or of SFT), s", "solved greedily before", "after"),
    *("sampled before", "after", "truncated", "unparsable", "entropy", "bar"),
)


def main() -> int:
    options = parse()
    name = "first_desk_from_scratch" if options.from_scratch else "first_desk"
    runs = FinishedRuns(name=name, budget={"samples_per_task": DRAWS}, resume=options.resume)

    def work(key: dict[str, Any], num_cores: int) -> dict[str, Any]:
        if key["seed"] == "blind":
            return runs.once(key, measure_blind)
        return runs.once(key, partial(measure, key["seed"], options, num_cores))

    keys: list[dict[str, Any]] = [{"seed": seed} for seed in options.seeds]
    needs_blind = not options.from_scratch
    keys += [{"seed": "blind"}] if needs_blind and not options.skip_blind else []
    rows = side_by_side(keys, work, options.side_by_side)
    print_table(HEADER, [row_of(row["seed"], look) for row in rows for look in row.get("looks", ())])
    is_whole = not needs_blind or (not options.skip_blind and set(options.steps) >= set(STEPS))
    return runs.finish(passed=is_whole and all(row["passed"] for row in rows))


def parse() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    arguments.add_argument(
        "--steps", type=int, nargs="+", default=list(STEPS), help="after which each seed is judged"
    )
    arguments.add_argument("--side-by-side", type=int, default=1, help="runs at once, on shares of the cores")
    arguments.add_argument("--from-scratch", action="store_true")
    arguments.add_argument("--limit-s", type=float, default=4 * LAUNCH_LIMIT_S, help="of one run")
    arguments.add_argument("--skip-blind", action="store_true", help="the bar is missed without it")
    add_resume(arguments)
    return arguments.parse_args()


def measure(seed: int, options: argparse.Namespace, num_cores: int) -> dict[str, Any]:
    """One experiment of the preset with this seed; a failure is a status, not an exception."""
    steps = [1] if options.from_scratch else sorted(options.steps)
    values: dict[str, object] = {"optimiser.seed": seed, "evaluation.samples_per_task": DRAWS}
    values |= {"algorithm.num_steps": steps[-1], "evaluation.every": math.gcd(*steps)}
    if options.from_scratch:
        values |= {"evaluation.after": False}  # what GRPO makes of it is measured without this flag
    preset = "first-desk-from-scratch" if options.from_scratch else "first-desk"
    limit_s = options.limit_s + (SCRATCH_LIMIT_S if options.from_scratch else 0)
    try:
        described = run(limit_s, num_cores, "--preset", preset, *settings(values))
    except (InstanceFailed, subprocess.SubprocessError) as error:
        return {"status": "failed", "message": str(error)[-2000:], "looks": [], "passed": False}
    looks = [judge(described, count, options.from_scratch, num_cores) for count in steps]
    return {
        "status": described["status"],
        "message": described["message"],
        "num_cores": num_cores,
        "alarms": [alarm["name"] for alarm in described["alarms"]],
        "curves": {name: described["metrics"][name] for name in CURVES},
        "looks": looks,
        "passed": all(look["passed"] for look in looks),
    }


def run(limit_s: float, num_cores: int, *arguments: str) -> dict[str, Any]:
    """Launch on a CPU, wait until it ends or its time is over, and describe it with its curves."""
    slots, workers = SLOTS_PER_CORE * num_cores, max(2, num_cores // 4)
    env = {"CUDA_VISIBLE_DEVICES": "", "DESKHAND_TORCH_THREADS": str(max(num_cores // 2, 2))}
    with Instance(without=["web"], slots=slots, env_workers=workers, env=env) as deskhand:
        number = launch(deskhand, *arguments)
        described = follow(deskhand, number, limit_s, *CURVES, poll_s=POLL_S)
        return described | {"looks": looks_of(outcomes(deskhand, number))}


EVALUATIONS = ("before", "after", "greedy_before", "greedy_after")


def judge(described: dict[str, Any], steps: int, from_scratch: bool, num_cores: int) -> dict[str, Any]:
    """The figures of one run after `steps` steps, and what of the bar they miss."""
    stages = {stage["name"]: stage for stage in described["stages"]}
    started = stages["grpo"]["started_at"]
    row: dict[str, Any] = {
        "step": steps,
        "num_cores": num_cores,
        "to_end_of_grpo_s": seconds(described["created_at"], started) if started else None,
        "sft_s": seconds(described["created_at"], stages["sft"]["ended_at"]) if "sft" in stages else None,
        "curves": {name: until(described["metrics"][name], steps) for name in CURVES},
    }
    if row["to_end_of_grpo_s"] is not None:  # without the evaluations in between
        row["to_end_of_grpo_s"] += sum(value for _, value in row["curves"].pop("time/step_s"))
    for name, at in (("before", 0), ("after", steps)):
        row[name] = evaluation_at(described, at, greedy=False)
        row[f"greedy_{name}"] = evaluation_at(described, at, greedy=True)
        row[f"passes_{name}"] = passes_at(described["looks"], at)
    row |= at_the_end(row)
    row["missed"] = missed_from_scratch(row) if from_scratch else missed(row)
    del row["curves"]
    return row | {"passed": not row["missed"]}


def until(curve: list[tuple[int, float]], steps: int) -> list[tuple[int, float]]:
    """The part of a series up to and with a step."""
    return [(step, value) for step, value in curve if step <= steps]


def evaluation_at(described: dict[str, Any], step: int, *, greedy: bool) -> dict[str, Any] | None:
    """The evaluation after this step; None when there was none."""
    found = [item for item in described["evaluations"] if item["step"] == step]
    names = [item["name"] for item in found]
    return evaluation({"evaluations": found}, names[-1], greedy=greedy) if names else None


def at_the_end(row: dict[str, Any]) -> dict[str, float | None]:
    """How the trajectories of the last evaluations ended, greedy and sampled, and how sure the policy was."""
    last = [found for name in ("greedy_after", "after") if (found := row[name])]
    samples = sum(found["num_samples"] for found in last)
    tail = [value for _, value in row["curves"]["loss/entropy"][-LAST_STEPS:]]

    def pooled(share: str) -> float | None:
        return sum(found[share] * found["num_samples"] for found in last) / samples if samples else None

    return {
        "truncated_at_end": pooled("truncated_share"),
        "unparsable_at_end": pooled("unparsable_share"),
        "entropy_at_end": sum(tail) / len(tail) if tail else None,
    }


def missed_from_scratch(row: dict[str, Any]) -> list[str]:
    """What of SFT's bar a run missed, in words."""
    before = row["before"]
    if before is None or before["num_tasks"] < MIN_TASKS:
        return ["it was not evaluated"]
    found = [] if SCRATCH[0] <= before["success"] <= SCRATCH[1] else [f"{before['success']:.0%} after SFT"]
    return found + (
        [] if row["sft_s"] and row["sft_s"] <= SCRATCH_LIMIT_S else [f"SFT took {row['sft_s']} s"]
    )


def missed(row: dict[str, Any]) -> list[str]:
    """What of the bar a run missed, in words."""
    if any(row[name] is None or row[name]["num_tasks"] < MIN_TASKS for name in EVALUATIONS):
        return ["it was not evaluated"]
    before, after, greedy, last = (row[name] for name in EVALUATIONS)
    bars = [
        (greedy["success"] <= MAX_GREEDY_BEFORE, f"greedy {greedy['success']:.0%} before"),
        (before["success"] >= MIN_SAMPLED_BEFORE, f"sampled {before['success']:.0%} before"),
        (last["solved"] >= MIN_SOLVED, f"solved {last['solved']:.0%} greedily"),
        (rise(greedy, last) >= GREEDY_GAIN, f"greedy {rise(greedy, last):+.0%}"),
        (rise(before, after) >= SAMPLED_GAIN, f"sampled {rise(before, after):+.0%}"),
        (families_gained(greedy, last) >= FAMILIES_GAINED, f"{families_gained(greedy, last)} families"),
        (row["truncated_at_end"] <= MAX_TRUNCATED, f"{row['truncated_at_end']:.1%} truncated"),
        (row["unparsable_at_end"] <= MAX_UNPARSABLE, f"{row['unparsable_at_end']:.1%} unparsable"),
        (row["entropy_at_end"] <= MAX_ENTROPY, f"entropy {row['entropy_at_end']:.2f}"),
        (is_in_time(row), f"{row['to_end_of_grpo_s']} s to the end of GRPO"),
    ]
    return [words for is_met, words in bars if not is_met]


def rise(before: dict[str, Any], after: dict[str, Any]) -> float:
    """Of what the agent solved and ended, as a share; rounded, so that 0.6 is 0.6."""
    return round(after["solved"] - before["solved"], 9)


def is_in_time(row: dict[str, Any]) -> bool:
    """More cores, or more steps, have no bar."""
    if row["num_cores"] > LAUNCH_CORES or row["step"] > STEPS[0]:
        return True
    return row["to_end_of_grpo_s"] is not None and row["to_end_of_grpo_s"] <= LAUNCH_LIMIT_S


def families_gained(before: dict[str, Any], after: dict[str, Any]) -> int:
    """How many families' solved tasks rose by FAMILY_GAIN or more."""

    def share(found: dict[str, Any], family: str) -> float:
        won, trials, at_limit = found["per_family"][family]
        return (won - at_limit) / trials

    return sum(share(after, one) - share(before, one) >= FAMILY_GAIN for one in before["per_family"])


def measure_blind() -> dict[str, Any]:
    """The start without screenshots on the families that need them: must stay at chance."""
    described = run(
        LAUNCH_LIMIT_S,
        os.cpu_count() or 1,
        "--preset",
        "first-desk",
        *("--set", "prompt.observation=[]"),
        *("--set", "algorithm.num_steps=1"),
        *("--set", "algorithm.groups_per_step=1"),
        *("--set", "evaluation.after=false"),
    )
    before = evaluation(described, "before") or {"per_family": {}}
    families = {name: tuple(value) for name, value in before["per_family"].items() if name != "note"}
    hits, tasks = (sum(value[i] for value in families.values()) for i in (0, 1))
    share = hits / tasks if tasks else 1.0
    return {
        "status": described["status"],
        "success": share,
        "num_tasks": tasks,
        "per_family": families,
        "passed": share <= BLIND_LIMIT,
    }


def row_of(seed: int, row: dict[str, Any]) -> tuple[object, ...]:
    """One table row: a seed at one of its looks."""

    def percent(value: dict[str, Any] | None) -> str:
        if value is None:
            return "-"
        low, high = value["solved_low"], value["solved_high"]
        return f"{value['solved']:.0%} [{low:.0%}, {high:.0%}] n={value['num_samples']}"

    def figure(name: str, form: str) -> str:
        return "-" if row[name] is None else format(row[name], form)

    return (
        *(seed, row["step"]),
        row["to_end_of_grpo_s"] if row["sft_s"] is None else row["sft_s"],
        *(percent(row[name]) for name in ("greedy_before", "greedy_after", "before", "after")),
        figure("truncated_at_end", ".1%"),
        figure("unparsable_at_end", ".1%"),
        figure("entropy_at_end", ".3f"),
        "; ".join(row["missed"]) or "met",
    )


if __name__ == "__main__":
    sys.exit(main())
