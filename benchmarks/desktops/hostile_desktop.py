"""Can a program in a desktop forge its score, outlive a reset, or reach anything outside?

Every attack of `testing/hostile_desktop` runs as a real program in a real X11 desktop: against the sandbox as
it is, and against one without the defence that holds it off, where it must succeed. Then what resets cost:
one desktop with programs apart from the agent and one with both together, in turn.

Bar: at least 40 attacks; none succeeds; each does without its defence; the next lease is clean every time;
no process and no folder is left; reset p50 <= 60 ms, and at most 1/0.9 of what it costs without. Called
again it measures what did not finish, attacks that did no harm to a weak desktop, and resets that were too
slow; an attack that succeeded stays on record until `--anew`.

    python -m benchmarks.desktops.hostile_desktop                    # X11 desktops
    python -m benchmarks.desktops.hostile_desktop --provider qemu    # virtual machines: hostile_machine.py
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.desktops import hostile_machine
from benchmarks.finished_runs import FinishedRuns
from benchmarks.report import RESULTS, finish, percentile, print_table
from testing.hostile_desktop.run_attacks import Verdict, all_attacks, attacks_on_root, run_attack
from testing.hostile_desktop.stage import SPEC, Attack, Canaries, canaries
from workers.desktops.x11.provider import X11Provider
from workers.processes.own_account import give, go_on_as, own_account

ROOT = Path(__file__).resolve().parents[2]
RESULTS_VARIABLE = "DESKHAND_BENCHMARK_RESULTS"
LOOP_TURNS = 1_000_000
MIN_ATTACKS = 40
MAX_RESET_MS = 60.0
MAX_COST = 1 / 0.9
ROUNDS = 40
PAUSE_S = 0.3
"""A trajectory takes seconds: the next space is made in that time."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--provider", choices=("x11", "qemu"), default="x11")
    parser.add_argument("--anew", action="store_true", help="forget what was measured before")
    options = parser.parse_args()
    if os.geteuid() == 0:
        return as_ordinary_user(options.provider, anew=options.anew)
    if options.provider == "qemu":
        figures = hostile_machine.measure(ROOT)
        passed = hostile_machine.held(figures)
        return finish("hostile_machine", figures, passed=passed, results=results_folder())
    return measure(anew=options.anew)


def as_ordinary_user(provider: str, *, anew: bool) -> int:
    """Run the attacks that need root's user number, then all others as desktops really run."""
    root = asyncio.run(attack_as_root()) if provider == "x11" else []
    images = hostile_machine.folders(ROOT) if provider == "qemu" else []
    results = Path(tempfile.mkdtemp(prefix="dh-"))
    if provider == "x11" and not anew and (known := RESULTS / "hostile_desktop.json").exists():
        shutil.copy(known, results)
    child = os.fork()
    if child == 0:
        account = own_account()
        give([results, *images], account)
        os.environ[RESULTS_VARIABLE] = str(results)
        os.environ["DESKHAND_ON_ROOT"] = ",".join(root)
        os.environ.pop("DESKHAND_DATA_DIR", None)
        argv = [sys.executable, "-m", "benchmarks.desktops.hostile_desktop", "--provider", provider]
        go_on_as(account, argv, shown=[ROOT, results, *images], home=results)
    try:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    finally:
        for found in results.glob("*.json"):
            shutil.copy(found, RESULTS / found.name)
        shutil.rmtree(results)


async def attack_as_root() -> list[str]:
    """Names of the attacks that succeed where the desk host stayed root."""
    with canaries() as canary:
        return [
            attack.name
            for attack in attacks_on_root()
            if (await run_attack(attack, canary, weakened=True)).succeeded
        ]


def measure(*, anew: bool) -> int:
    runs = FinishedRuns(
        name="hostile_desktop", budget={}, anew=anew, results=results_folder(), loop_turns=LOOP_TURNS
    )
    on_root = os.environ.get("DESKHAND_ON_ROOT", "").split(",")
    with canaries() as canary:
        rows = [
            runs.once({"attack": attack.name}, lambda attack=attack: try_twice(attack, canary))
            for attack in all_attacks(canary)
        ]
        rows += [
            runs.once(
                {"attack": attack.name},
                lambda attack=attack: told(
                    asyncio.run(run_attack(attack, canary, weakened=False)), attack.name in on_root
                ),
            )
            for attack in attacks_on_root()
        ]
        left = [path.name for path in canary.folder.iterdir() if path.is_dir()]
    resets = runs.once({"attack": "none: what resets cost"}, measure_resets)
    figures = {
        "attacks": len(rows),
        "succeeded": [row["attack"] for row in rows if row["succeeded"]],
        "not_clean_afterwards": [row["attack"] for row in rows if not row["is_next_clean"]],
        "harmless_without_their_defence": [row["attack"] for row in rows if not row["weak_succeeded"]],
        "folders_left": left,
        "by_defence": dict(sorted(Counter(row["without"] for row in rows).items())),
        "reset_ms": resets["reset_ms"],
        "reset_ms_programs_beside_the_agent": resets["reset_ms_programs_beside_the_agent"],
    }
    return runs.finish(passed=held(figures), **figures)


def try_twice(attack: Attack, canary: Canaries) -> dict[str, Any]:
    """Against the whole sandbox, and against one without the defence."""
    strong = asyncio.run(run_attack(attack, canary, weakened=False))
    weak = asyncio.run(run_attack(attack, canary, weakened=True))
    return told(strong, weak.succeeded)


def told(strong: Verdict, weak_succeeded: bool) -> dict[str, Any]:
    """A row. What succeeded once stays; only an attack that did no harm to a weak desktop is tried again."""
    word = "HELD" if not strong.succeeded and strong.is_next_clean and weak_succeeded else "FAILED"
    print(f"{word:7} {strong.name} (without {strong.without})", flush=True)
    return {
        "without": strong.without,
        "succeeded": strong.succeeded,
        "is_next_clean": strong.is_next_clean,
        "weak_succeeded": weak_succeeded,
        "status": "finished" if weak_succeeded or strong.succeeded else "harmless",
    }


def measure_resets() -> dict[str, Any]:
    """In turn: with programs apart from the agent, and with both together."""
    times: dict[bool, list[float]] = {True: [], False: []}
    for is_apart in (False, True, False, True):
        without = frozenset() if is_apart else frozenset({"namespaces"})
        times[is_apart] += asyncio.run(reset_times(without))
    found = {
        is_apart: {
            "p50": round(percentile(some, 0.5), 1),
            "p90": round(percentile(some, 0.9), 1),
            "n": len(some),
        }
        for is_apart, some in times.items()
    }
    is_cheap = found[True]["p50"] <= min(MAX_RESET_MS, found[False]["p50"] * MAX_COST)
    return {
        "reset_ms": found[True],
        "reset_ms_programs_beside_the_agent": found[False],
        "status": "finished" if is_cheap else "slow",
    }


async def reset_times(without: frozenset[str]) -> list[float]:
    """Milliseconds of resets in place of one desktop."""
    folder = Path(tempfile.mkdtemp(prefix="dh-"))
    machine = await X11Provider(weakened=without).create("resets", SPEC, folder / "d")
    times = []
    try:
        for _ in range(ROUNDS):
            await asyncio.sleep(PAUSE_S)
            started = time.monotonic()
            await machine.reset()
            times.append((time.monotonic() - started) * 1000)
    finally:
        await machine.destroy()
        shutil.rmtree(folder)
    return times


def held(figures: dict[str, Any]) -> bool:
    """Whether the bar is met; prints the table."""
    new, old = figures["reset_ms"]["p50"], figures["reset_ms_programs_beside_the_agent"]["p50"]
    worst = ("succeeded", "not_clean_afterwards", "harmless_without_their_defence", "folders_left")
    print_table(
        ("what", "bar", "found"),
        (
            ("attacks", f">= {MIN_ATTACKS}", figures["attacks"]),
            *((name.replace("_", " "), "0", len(figures[name])) for name in worst),
            ("reset p50, ms", f"<= {MAX_RESET_MS:.0f}", new),
            ("the same, programs beside the agent", f">= {new / MAX_COST:.0f}", old),
        ),
    )
    is_cheap = new <= MAX_RESET_MS and new <= old * MAX_COST
    return figures["attacks"] >= MIN_ATTACKS and not any(figures[name] for name in worst) and is_cheap


def results_folder() -> Path:
    return Path(os.environ.get(RESULTS_VARIABLE) or RESULTS)


if __name__ == "__main__":
    sys.exit(main())
