"""Can a program in a desktop forge its score, outlive a reset, or reach anything outside?

Every attack of `testing/hostile_desktop` runs as a real program in a real X11 desktop: against the sandbox as
it is, and against one without the defence that holds it off, where it must succeed. Then what resets cost:
one desktop with programs apart from the agent and one with both together, in turn.

Bar: at least 40 attacks; none succeeds; each does without its defence; the next lease is clean every time;
no process and no folder is left; reset p50 <= 60 ms, and at most 1/0.9 of what it costs without.

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
from pathlib import Path
from typing import Any

from benchmarks.desktops import hostile_machine
from benchmarks.desktops.attack_rows import (
    RESULTS_VARIABLE,
    all_held,
    measure_attacks,
    middle_and_tail,
    runs_of,
    sum_up,
)
from benchmarks.finished_runs import add_resume
from benchmarks.report import COMMIT_VARIABLE, RESULTS, commit
from testing.hostile_desktop.run_attacks import Verdict, all_attacks, attacks_on_root, run_attack
from testing.hostile_desktop.stage import SPEC, Attack, canaries
from workers.desktops.x11.provider import X11Provider
from workers.processes.own_account import give, go_on_as, own_account

ROOT = Path(__file__).resolve().parents[2]
NAME = "hostile_desktop"
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
    add_resume(parser)
    options = parser.parse_args()
    if os.geteuid() == 0:
        return as_ordinary_user(options.provider, resume=options.resume)
    if options.provider == "qemu":
        return hostile_machine.measure(ROOT, resume=options.resume)
    return measure(resume=options.resume)


def as_ordinary_user(provider: str, *, resume: bool) -> int:
    """Run the attacks that need root's user number, then all others as desktops really run."""
    root = asyncio.run(attack_as_root()) if provider == "x11" else []
    images = hostile_machine.folders(ROOT) if provider == "qemu" else []
    results = Path(tempfile.mkdtemp(prefix="dh-"))
    part = RESULTS / f".{NAME if provider == 'x11' else hostile_machine.NAME}.part.json"
    if resume and part.exists():
        shutil.copy(part, results)
    child = os.fork()
    if child == 0:
        account = own_account()
        give([results, *images], account)
        os.environ[RESULTS_VARIABLE] = str(results)
        os.environ["DESKHAND_ON_ROOT"] = ",".join(root)
        os.environ[COMMIT_VARIABLE] = commit()
        os.environ.pop("DESKHAND_DATA_DIR", None)
        argv = [sys.executable, "-m", "benchmarks.desktops.hostile_desktop", "--provider", provider]
        argv += ["--resume"] * resume
        go_on_as(account, argv, shown=[ROOT, results, *images], home=results)
    try:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    finally:
        part.unlink(missing_ok=True)
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


def measure(*, resume: bool) -> int:
    runs = runs_of(NAME, resume=resume)
    on_root = os.environ.get("DESKHAND_ON_ROOT", "").split(",")

    def try_twice(attack: Attack) -> tuple[Verdict, bool]:
        strong = asyncio.run(run_attack(attack, canary, weakened=False))
        if attack in attacks_on_root():
            return strong, attack.name in on_root
        return strong, asyncio.run(run_attack(attack, canary, weakened=True)).succeeded

    with canaries() as canary:
        rows = measure_attacks(runs, (*all_attacks(canary), *attacks_on_root()), try_twice)
        figures = sum_up(rows, canary)
    resets = runs.once({"attack": "none: what resets cost"}, measure_resets)
    figures |= {name: resets[name] for name in ("reset_ms", "reset_ms_programs_beside_the_agent")}
    return runs.finish(passed=held(figures), **figures)


def measure_resets() -> dict[str, Any]:
    """In turn: with programs apart from the agent, and with both together."""
    times: dict[bool, list[float]] = {True: [], False: []}
    for is_apart in (False, True, False, True):
        without = frozenset() if is_apart else frozenset({"namespaces"})
        times[is_apart] += asyncio.run(reset_times(without))
    found = {is_apart: middle_and_tail(some) for is_apart, some in times.items()}
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
    is_held = all_held(
        figures,
        ("reset p50, ms", f"<= {MAX_RESET_MS:.0f}", new),
        ("the same, programs beside the agent", f">= {new / MAX_COST:.0f}", old),
    )
    return is_held and new <= MAX_RESET_MS and new <= old * MAX_COST


if __name__ == "__main__":
    sys.exit(main())
