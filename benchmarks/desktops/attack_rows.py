"""One row per attack, and what all of them come to: of X11 desktops and of virtual machines."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.finished_runs import FinishedRuns
from benchmarks.report import RESULTS, percentile, print_table
from testing.hostile_desktop.run_attacks import Verdict
from testing.hostile_desktop.stage import Attack, Canaries

RESULTS_VARIABLE = "DESKHAND_BENCHMARK_RESULTS"
LOOP_TURNS = 1_000_000
MIN_ATTACKS = 40
WORST = ("succeeded", "not_clean_afterwards", "harmless_without_their_defence", "folders_left")


def runs_of(name: str, *, resume: bool) -> FinishedRuns:
    """The rows of this run."""
    results = Path(os.environ.get(RESULTS_VARIABLE) or RESULTS)
    return FinishedRuns(name=name, budget={}, resume=resume, results=results, loop_turns=LOOP_TURNS)


def measure_attacks(
    runs: FinishedRuns, attacks: Iterable[Attack], try_twice: Callable[[Attack], tuple[Verdict, bool]]
) -> list[dict[str, Any]]:
    """A row per attack. `try_twice`: its verdict on a whole desktop, and whether a weak one fell to it."""
    return [
        runs.once({"attack": attack.name}, lambda attack=attack: _told(*try_twice(attack)))
        for attack in attacks
    ]


def _told(strong: Verdict, weak_succeeded: bool) -> dict[str, Any]:
    """A row; an attack that did no harm to a weak desktop proves nothing: `--resume` tries it again."""
    word = "HELD" if not strong.succeeded and strong.is_next_clean and weak_succeeded else "FAILED"
    print(f"{word:7} {strong.name} (without {strong.without})", flush=True)
    return {
        "without": strong.without,
        "succeeded": strong.succeeded,
        "is_next_clean": strong.is_next_clean,
        "weak_succeeded": weak_succeeded,
        "status": "finished" if weak_succeeded or strong.succeeded else "harmless",
    }


def sum_up(rows: list[dict[str, Any]], canary: Canaries) -> dict[str, Any]:
    """Counts and the names of what went wrong. To be asked when all desktops are gone."""
    return {
        "attacks": len(rows),
        "succeeded": [row["attack"] for row in rows if row["succeeded"]],
        "not_clean_afterwards": [row["attack"] for row in rows if not row["is_next_clean"]],
        "harmless_without_their_defence": [row["attack"] for row in rows if not row["weak_succeeded"]],
        "folders_left": [path.name for path in canary.folder.iterdir() if path.is_dir()],
        "by_defence": dict(sorted(Counter(row["without"] for row in rows).items())),
    }


def middle_and_tail(times_ms: list[float]) -> dict[str, Any]:
    return {
        "p50": round(percentile(times_ms, 0.5), 1),
        "p90": round(percentile(times_ms, 0.9), 1),
        "n": len(times_ms),
    }


def all_held(figures: dict[str, Any], *more: tuple[str, str, object]) -> bool:
    """Whether enough attacks were tried and all were held; prints the table, with `more` rows."""
    rows = [(name.replace("_", " "), "0", len(figures[name])) for name in WORST]
    table = [("attacks", f">= {MIN_ATTACKS}", figures["attacks"]), *rows, *more]
    print_table(("what", "bar", "found"), table)
    return figures["attacks"] >= MIN_ATTACKS and not any(figures[name] for name in WORST)
