"""How well the placement decision uses a pool of 8 hosts with 8 GPUs: a recorded mix of 200 experiments.

    python -m benchmarks.scheduling

The mix (`benchmarks/scheduling_mix.csv`) has experiments of 1 to 8 GPUs and minutes to hours, of three teams
and two priorities, and asks for more than the pool has for most of the time. The decision knows neither how
long one takes nor what comes next. The best possible at a moment is what can be asked of the pool: all GPUs,
or fewer when all that waits and runs wants fewer. It passes when 90 % of that was in use, all experiments
ended, and no decision took longer than 50 ms of processor time.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

from benchmarks.finished_runs import load_and_speed
from benchmarks.report import finish, percentile, print_table
from testing.simulated_pool import SimulatedExperiment, SimulatedPool, hosts_with_gpus

MIX = Path(__file__).with_name("scheduling_mix.csv")
NUM_HOSTS, GPUS_PER_HOST = 8, 8
LEAST_SHARE_OF_BEST = 0.9
LONGEST_DECISION_S = 0.05


def read_mix() -> list[SimulatedExperiment]:
    """The recorded experiments, in the order in which they are queued."""
    with MIX.open() as file:
        return [
            SimulatedExperiment(
                pk=number,
                submit_s=float(row["submit_s"]),
                takes_s=float(row["takes_s"]),
                num_gpus=int(row["num_gpus"]),
                team=int(row["team"]),
                priority=int(row["priority"]),
            )
            for number, row in enumerate(csv.DictReader(file), start=1)
        ]


def share_of_best(pool: SimulatedPool, mix: list[SimulatedExperiment]) -> float:
    """GPU seconds in use, of those that could have been at each moment."""
    moments = sorted(
        {one.submit_s for one in mix} | set(pool.started_at.values()) | set(pool.ended_at.values())
    )
    used = possible = 0.0
    for start, end in zip(moments, moments[1:], strict=False):
        there = [one for one in mix if one.submit_s <= start < pool.ended_at[one.pk]]
        runs = sum(one.num_gpus for one in there if pool.started_at[one.pk] <= start)
        asked = sum(one.num_gpus for one in there)
        used += runs * (end - start)
        possible += min(NUM_HOSTS * GPUS_PER_HOST, asked) * (end - start)
    return used / possible


def main() -> int:
    mix = read_mix()
    before = load_and_speed()
    pool = SimulatedPool(hosts_with_gpus(NUM_HOSTS, GPUS_PER_HOST))
    pool.run(mix)
    share = share_of_best(pool, mix)
    waits = {one.pk: pool.started_at[one.pk] - one.submit_s for one in mix}
    makespan_s = max(pool.ended_at.values())
    rows = []
    for size in sorted({one.num_gpus for one in mix}):
        waited = [waits[one.pk] / 3600 for one in mix if one.num_gpus == size]
        rows.append((size, len(waited), f"{sum(waited) / len(waited):.1f}", f"{max(waited):.1f}"))
    print_table(("GPUs", "experiments", "mean wait h", "longest wait h"), rows)
    figures = {
        "num_experiments": len(mix),
        "num_ended": len(pool.ended_at),
        "share_of_best": share,
        "makespan_h": makespan_s / 3600,
        "mean_wait_h": sum(waits.values()) / len(waits) / 3600,
        "longest_wait_h": max(waits.values()) / 3600,
        "most_passed": pool.most_passed,
        "num_decisions": len(pool.decision_s),
        "decision_p50_ms": percentile(pool.decision_s, 0.5) * 1000,
        "decision_p99_ms": percentile(pool.decision_s, 0.99) * 1000,
        "decision_max_ms": max(pool.decision_s) * 1000,
        "longest_wait_by_size_h": {str(row[0]): float(row[3]) for row in rows},
        "before": before,
        "after": load_and_speed(),
    }
    passed = (
        share >= LEAST_SHARE_OF_BEST
        and len(pool.ended_at) == len(mix)
        and max(pool.decision_s) <= LONGEST_DECISION_S
    )
    return finish("scheduling", figures, passed=passed)


if __name__ == "__main__":
    sys.exit(main())
