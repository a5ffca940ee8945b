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
from benchmarks.report import finish, percentile, print_table
from testing.hostile_desktop.run_attacks import Verdict, all_attacks, attacks_on_root, run_attack
from testing.hostile_desktop.stage import SPEC, Canaries, canaries
from workers.desktops.x11.provider import X11Provider
from workers.processes.own_account import give, go_on_as, own_account

ROOT = Path(__file__).resolve().parents[2]
RESULTS = "DESKHAND_BENCHMARK_RESULTS"
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
    provider = parser.parse_args().provider
    if os.geteuid() == 0:
        return as_ordinary_user(provider)
    if provider == "qemu":
        figures = hostile_machine.measure(ROOT)
        return end("hostile_machine", figures, passed=hostile_machine.held(figures))
    return report(asyncio.run(measure()))


def as_ordinary_user(provider: str) -> int:
    """Run the attacks that need root's user number, then all others as desktops really run."""
    root = asyncio.run(attack_as_root()) if provider == "x11" else []
    images = hostile_machine.folders(ROOT) if provider == "qemu" else []
    results = Path(tempfile.mkdtemp(prefix="dh-"))
    child = os.fork()
    if child == 0:
        account = own_account()
        give([results, *images], account)
        os.environ[RESULTS] = str(results)
        os.environ["DESKHAND_ON_ROOT"] = ",".join(root)
        os.environ.pop("DESKHAND_DATA_DIR", None)
        argv = [sys.executable, "-m", "benchmarks.desktops.hostile_desktop", "--provider", provider]
        go_on_as(account, argv, shown=[ROOT, results, *images], home=results)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for found in results.glob("*.json"):
        shutil.copy(found, ROOT / "benchmarks" / "results" / found.name)
    shutil.rmtree(results)
    return code


async def attack_as_root() -> list[str]:
    """Names of the attacks that succeed where the desk host stayed root."""
    with canaries() as canary:
        return [
            attack.name
            for attack in attacks_on_root()
            if (await run_attack(attack, canary, weakened=True)).succeeded
        ]


async def measure() -> dict[str, Any]:
    on_root = os.environ.get("DESKHAND_ON_ROOT", "").split(",")
    with canaries() as canary:
        rows = []
        for attack in all_attacks(canary):
            rows.append(await try_twice(attack, canary))
        for attack in attacks_on_root():
            strong = await run_attack(attack, canary, weakened=False)
            rows.append((strong, attack.name in on_root))
        left = [path.name for path in canary.folder.iterdir() if path.is_dir()]
    old, new = await reset_times(frozenset({"namespaces"})), await reset_times(frozenset())
    old, new = old + await reset_times(frozenset({"namespaces"})), new + await reset_times(frozenset())
    return {
        "attacks": len(rows),
        "succeeded": [row.name for row, _ in rows if row.succeeded],
        "not_clean_afterwards": [row.name for row, _ in rows if not row.is_next_clean],
        "harmless_without_their_defence": [row.name for row, weak in rows if not weak],
        "folders_left": left,
        "by_defence": {d: sum(row.without == d for row, _ in rows) for d in {row.without for row, _ in rows}},
        "names": [row.name for row, _ in rows],
        "reset_ms": {
            "p50": round(percentile(new, 0.5), 1),
            "p90": round(percentile(new, 0.9), 1),
            "n": len(new),
        },
        "reset_ms_programs_beside_the_agent": {
            "p50": round(percentile(old, 0.5), 1),
            "p90": round(percentile(old, 0.9), 1),
            "n": len(old),
        },
        "load": round(os.getloadavg()[0], 1),
    }


async def try_twice(attack: Any, canary: Canaries) -> tuple[Verdict, bool]:
    """Its verdict against the whole sandbox, and whether it succeeds without its defence."""
    strong = await run_attack(attack, canary, weakened=False)
    weak = await run_attack(attack, canary, weakened=True)
    word = "HELD" if not strong.succeeded and strong.is_next_clean and weak.succeeded else "FAILED"
    print(f"{word:7} {attack.name} (without {attack.without}: {weak.report or weak.succeeded})", flush=True)
    return strong, weak.succeeded


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


def report(figures: dict[str, Any]) -> int:
    new, old = figures["reset_ms"]["p50"], figures["reset_ms_programs_beside_the_agent"]["p50"]
    held = not (figures["succeeded"] or figures["not_clean_afterwards"] or figures["folders_left"])
    can_fail = not figures["harmless_without_their_defence"]
    print_table(
        ("what", "bar", "found"),
        (
            ("attacks", f">= {MIN_ATTACKS}", figures["attacks"]),
            ("succeeded", "0", len(figures["succeeded"])),
            ("next lease not clean", "0", len(figures["not_clean_afterwards"])),
            ("harmless without their defence", "0", len(figures["harmless_without_their_defence"])),
            ("reset p50, ms", f"<= {MAX_RESET_MS:.0f}", new),
            ("the same, programs beside the agent", f">= {new / MAX_COST:.0f}", old),
        ),
    )
    is_cheap = new <= MAX_RESET_MS and new <= old * MAX_COST
    passed = figures["attacks"] >= MIN_ATTACKS and held and can_fail and is_cheap
    return end("hostile_desktop", figures, passed=passed)


def end(name: str, figures: dict[str, Any], *, passed: bool) -> int:
    where = os.environ.get(RESULTS)
    return finish(name, figures, passed=passed, **({"results": Path(where)} if where else {}))


if __name__ == "__main__":
    sys.exit(main())
