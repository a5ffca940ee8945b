"""Runs of a long benchmark, written one by one to its result file: an interrupted benchmark goes on there.

    runs = FinishedRuns("learning_controls", budget={"steps": 60}, anew=options.anew)
    rows = [runs.once({"arm": arm, "seed": seed}, lambda: measure(arm, seed)) for ...]
    return runs.finish(passed=all(row["passed"] for row in rows))

A run is measured again when it did not finish, or when it had another budget.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.report import RESULTS, finish, machine, write_result

Run = dict[str, Any]
LOOP_TURNS = 20_000_000
LOOP = """
import sys, time
def loop():
    started = time.perf_counter()
    for _ in range(int(sys.argv[1])):
        pass
    return time.perf_counter() - started
print(loop())
"""


@dataclass(kw_only=True)
class FinishedRuns:
    """The runs in results/NAME.json."""

    name: str
    budget: Mapping[str, Any]
    """What every run may use, as JSON holds it."""
    anew: bool = False
    """Forget what was measured before."""
    results: Path = RESULTS
    loop_turns: int = LOOP_TURNS
    """Of the loop that says how fast the machine is."""
    runs: list[Run] = field(init=False)
    lock: threading.Lock = field(init=False, default_factory=threading.Lock)
    """Runs may be measured beside each other."""

    def __post_init__(self) -> None:
        self.runs = [] if self.anew else self._stored()

    def find(self, key: Mapping[str, Any]) -> Run | None:
        """The finished run of this key and this budget."""
        wanted = {**key, "budget": dict(self.budget), "status": "finished"}
        found = (run for run in self.runs if all(run.get(name) == wanted[name] for name in wanted))
        return next(found, None)

    def once(self, key: Mapping[str, Any], measure: Callable[[], Run]) -> Run:
        """The run of this key: from the file, or measured and written there with its conditions.

        `measure` returns its figures, with "status": "finished" when they are whole.
        """
        if known := self.find(key):
            print(f"{dict(key)}: measured {known['conditions']['date']}", flush=True)
            return known
        before = load_and_speed(self.loop_turns)
        figures = measure()
        after = load_and_speed(self.loop_turns)
        conditions = machine() | {"commit": commit(), "before": before, "after": after}
        run = {**key, **figures, "budget": dict(self.budget), "conditions": conditions}
        run = json.loads(json.dumps(run))  # as a later call will read it
        with self.lock:
            others = [one for one in self.runs if any(one.get(name) != key[name] for name in key)]
            self.runs = [*others, run]
            write_result(self.name, {"runs": self.runs}, passed=False, results=self.results)
        return run

    def finish(self, *, passed: bool, **figures: Any) -> int:
        """As `report.finish`."""
        return finish(self.name, {**figures, "runs": self.runs}, passed=passed, results=self.results)

    def _stored(self) -> list[Run]:
        path = self.results / f"{self.name}.json"
        runs = json.loads(path.read_text())["figures"].get("runs", []) if path.exists() else []
        return [run for run in runs if "budget" in run]


def load_and_speed(loop_turns: int = LOOP_TURNS) -> dict[str, float]:
    """How busy and how fast this machine is now: load average, and the seconds of a plain loop.

    The loop has an interpreter of its own, on this thread's cores: runs beside each other do not wait for it.
    """
    load = os.getloadavg()[0]
    command = [sys.executable, "-S", "-c", LOOP, str(loop_turns)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {"load": load, "loop_s": float(done.stdout)}


def commit() -> str:
    """What was measured; "" outside a git checkout."""
    command = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(command, cwd=RESULTS, capture_output=True, text=True, check=False)
    return done.stdout.strip()
