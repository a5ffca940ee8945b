"""How often does the screen change after the picture of a turn was taken, and what does waiting for it cost?

    python -m benchmarks.desktops.late_repaints [--limit 3] [--families editor files]

Oracles of desk-office play each task in two ways in turn, on one desktop: `before` waits until nothing is
drawn or computed, `now` asks the programs for their timers as well. After each turn's picture the screen is
left alone for half a second and looked at again. Then a program that answers a click by a timer after 400 or
1 200 ms without using the processor, and one that never rests.

Bar: fewer than 1 % of the turns differ half a second later, at no more than 10 % more time per turn than
`before` in the same run; each slow program's change is in the picture, or the picture says that it comes.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.report import finish, percentile, print_table
from testing.desk_host_process import running_host
from testing.workers.slow_answers import answers
from training.content.task_sets import desk_office
from training.contracts.types import Action, ActionKind, Task
from workers.desktops import frame_images
from workers.desktops.contract import DesktopSpec, EnvError
from workers.desktops.host.client import LeaseKeeper
from workers.desktops.late_repaints import LateRepaints
from workers.desktops.leased_desktop import DesktopEnv
from workers.desktops.x11.system_root import desktop_root, has_program
from workers.tasks import prepare_and_score
from workers.tasks.errors import TaskError
from workers.tasks.oracles import solution

LATER_S = 0.5
ARMS = ("before", "now")
SMALL = {"editor", "files", "terminal", "settings"}
"""Families whose programs every x11 desktop has."""
POLICY_S = (0.0, 0.5, 2.0)
"""Of an answer of the policy; the cost per turn is set beside a turn with each."""


@dataclass(frozen=True, slots=True)
class TurnRow:
    """One turn of one arm."""

    family: str
    arm: str
    wall_s: float
    is_late: bool
    is_said: bool
    """The picture says that it may not be all."""


def chosen(limit: int, families: list[str]) -> Iterator[Task]:
    """Tasks of each family, spread evenly."""
    has_office = has_program(desktop_root(), "soffice")
    tasks: dict[str, list[Task]] = {}
    for task in desk_office.generate():
        if (not families or task.family in families) and (has_office or task.family in SMALL):
            tasks.setdefault(task.family, []).append(task)
    for group in tasks.values():
        count = min(limit, len(group))
        yield from (group[len(group) * place // count] for place in range(count))


def play(task: Task, env: DesktopEnv, arm: str, late: LateRepaints) -> list[TurnRow]:
    """The oracle's turns. Raises TaskError or EnvError."""
    env.reset()
    prepare_and_score.setup(task, env)
    env._late = late
    env.observe()
    rows = []
    for action in solution(task):
        if action.kind is ActionKind.TERMINATE:
            break
        started = time.monotonic()
        env.act(action)
        frame = env.observe()
        wall_s = time.monotonic() - started
        time.sleep(LATER_S)
        is_late = frame_images.digest(env.console.image()) != frame.raw_digest
        env.has_changed()
        rows.append(TurnRow(task.family, arm, wall_s, is_late, frame.unsettled is not None))
    return rows


def figures_of(rows: list[TurnRow]) -> dict[str, Any]:
    """Of one arm: all turns, and by family."""
    late = [row for row in rows if row.is_late]
    return {
        "turns": len(rows),
        "late": len(late),
        "late_share": round(len(late) / len(rows), 4),
        "late_and_not_said": sum(not row.is_said for row in late),
        "turn_ms_mean": round(1000 * statistics.mean(row.wall_s for row in rows), 1),
        "turn_ms_p50": round(1000 * percentile([row.wall_s for row in rows], 0.5), 1),
        "by_family": {
            name: {
                "turns": len(group),
                "late": sum(row.is_late for row in group),
                "turn_ms_mean": round(1000 * statistics.mean(row.wall_s for row in group), 1),
            }
            for name in sorted({row.family for row in rows})
            for group in [[row for row in rows if row.family == name]]
        },
    }


def slow_programs(env: DesktopEnv) -> list[dict[str, Any]]:
    """What becomes of a click that is answered late, or for ever."""
    found = []
    for after_ms in (400, 1200, 0):
        env.reset()
        at = answers(env, after_ms)
        before = env.observe()
        for _ in range(3):
            env.act(Action(kind=ActionKind.CLICK, x=at[0], y=at[1]))
            frame = env.observe()
            shows = frame.raw_digest != before.raw_digest
            found.append({"after_ms": after_ms, "shown": shows, "said": frame.unsettled})
            time.sleep(1.5 - frame.taken_monotonic_s % 0.1 if after_ms else 0.1)
            env.has_changed()
            before = env.observe()
    return found


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--limit", type=int, default=3, help="tasks of each family")
    arguments.add_argument("--families", nargs="*", default=[])
    options = arguments.parse_args()
    load = os.getloadavg()[0]
    rows: list[TurnRow] = []
    failures: list[str] = []
    folder = tempfile.mkdtemp(prefix="dh-", dir="/tmp")
    spec = DesktopSpec(width=1024, height=768, memory_mb=2048, home_mb=128)
    with running_host(Path(folder), "--warm-limit", "0") as client:
        lease = client.acquire("x11", spec, holder="late-repaints", ttl_s=60)
        with DesktopEnv(client, lease) as env, LeaseKeeper(client, lease):
            late = {"before": LateRepaints(lambda: None), "now": LateRepaints(lambda: env.agent.waiting())}
            for number, task in enumerate(chosen(options.limit, options.families)):
                for arm in ARMS if number % 2 else ARMS[::-1]:
                    try:
                        rows += play(task, env, arm, late[arm])
                    except (TaskError, EnvError) as error:
                        failures.append(f"{task.task_id} ({arm}): {error}")
                print(task.task_id, f"load {os.getloadavg()[0]:.1f}", flush=True)
            env._late = late["now"]
            slow = slow_programs(env)
    return report(rows, slow, failures, load)


def report(rows: list[TurnRow], slow: list[dict[str, Any]], failures: list[str], load: float) -> int:
    arms = {arm: figures_of([row for row in rows if row.arm == arm]) for arm in ARMS}
    before_s, now_s = (arms[arm]["turn_ms_mean"] / 1000 for arm in ARMS)
    ratios = {f"{policy_s:g}": round((now_s + policy_s) / (before_s + policy_s), 3) for policy_s in POLICY_S}
    columns = ("turns", "late", "late_share", "late_and_not_said", "turn_ms_mean", "turn_ms_p50")
    print_table(["arm", *columns], [[arm, *(arms[arm][column] for column in columns)] for arm in ARMS])
    print("time per turn, of the baseline, with a policy that takes so many seconds:", ratios)
    figures = {
        "task_set": "desk-office",
        "families": sorted({row.family for row in rows}),
        "later_s": LATER_S,
        "arms": arms,
        "time_ratio_by_policy_s": ratios,
        "slow_programs": slow,
        "failures": failures,
        "load_before_and_after": [round(load, 1), round(os.getloadavg()[0], 1)],
    }
    told = all(row["shown"] or row["said"] for row in slow)
    passed = arms["now"]["late_share"] < 0.01 and ratios["0"] <= 1.10 and told and not failures
    return finish("late_repaints", figures, passed=passed)


if __name__ == "__main__":
    sys.exit(main())
