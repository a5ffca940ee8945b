"""Runs of a long benchmark: each is kept as soon as it ends, so that `--resume` goes on where it was cut off.

    add_resume(arguments)
    runs = FinishedRuns(name="learning_controls", budget={"steps": 60}, resume=options.resume)
    rows = [runs.once({"arm": arm, "seed": seed}, lambda: measure(arm, seed)) for ...]
    return runs.finish(passed=all(row["passed"] for row in rows))

Without `--resume` everything is measured. With it, the runs come from the one benchmark that was cut off, of
the same tree, machine and budget: results/.NAME.part.json, which a benchmark that ends removes. A run that
failed is measured again, and keeps its earlier status.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.report import RESULTS, commit, finish, machine, print_table, write_whole

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


def add_resume(arguments: argparse.ArgumentParser) -> None:
    """The flag of every benchmark that keeps its runs."""
    arguments.add_argument(
        "--resume", action="store_true", help="go on with the run that was cut off: same tree, same machine"
    )


@dataclass(kw_only=True)
class FinishedRuns:
    """The runs of one benchmark. Raises SystemExit when there is nothing that `resume` may go on with."""

    name: str
    budget: Mapping[str, Any]
    """What every run may use, as JSON holds it."""
    resume: bool = False
    results: Path = RESULTS
    loop_turns: int = LOOP_TURNS
    """Of the loop that says how fast the machine is."""
    runs: list[Run] = field(init=False)
    lock: threading.Lock = field(init=False, default_factory=threading.Lock)
    """Runs may be measured beside each other."""

    def __post_init__(self) -> None:
        self.part = self.results / f".{self.name}.part.json"
        self.place = json.loads(json.dumps(_place() | {"budget": dict(self.budget)}))
        self.runs = self._cut_off() if self.resume else []
        if not self.resume and self.part.exists():
            print(f"{self.name}: a run was cut off; it is forgotten, since --resume is missing", flush=True)

    def find(self, key: Mapping[str, Any]) -> Run | None:
        """The finished run of this key."""
        found = self._of(key)
        return found if found and found["status"] == "finished" else None

    def once(self, key: Mapping[str, Any], measure: Callable[[], Run]) -> Run:
        """The run of this key: measured and kept with its conditions, or kept before the cut.

        `measure` returns its figures, with "status": "finished" when they are whole.
        """
        if kept := self.find(key):
            print(f"{label(key)}: measured {kept['conditions']['date']}", flush=True)
            return kept
        before = load_and_speed(self.loop_turns)
        figures = measure()
        after = load_and_speed(self.loop_turns)
        conditions = machine() | {"row": label(key), "commit": commit(), "before": before, "after": after}
        run = {**key, **figures, "budget": dict(self.budget), "conditions": conditions}
        if failed := self._of(key):
            run["earlier"] = [*failed.get("earlier", []), failed["status"]]
        run = json.loads(json.dumps(run))  # as a later call will read it
        with self.lock:
            self.runs = [*(one for one in self.runs if not _is_of(one, key)), run]
            self.results.mkdir(parents=True, exist_ok=True)
            write_whole(self.part, {"place": self.place, "runs": self.runs})
        return run

    def finish(self, *, passed: bool, **figures: Any) -> int:
        """As `report.finish`, after a table of the rows with the commit and the date of each.

        Rows of several trees are no verdict about any of them.
        """
        print_table(("row", "status", "commit", "measured"), [_shown(run) for run in self.runs])
        commits = {run["conditions"]["commit"] for run in self.runs}
        if len(commits) > 1:
            print(f"{self.name}: the tree was changed meanwhile: {', '.join(sorted(commits))}")
        figures |= {"runs": self.runs}
        status = finish(self.name, figures, passed=passed and len(commits) <= 1, results=self.results)
        self.part.unlink(missing_ok=True)
        return status

    def _of(self, key: Mapping[str, Any]) -> Run | None:
        return next((run for run in self.runs if _is_of(run, key)), None)

    def _cut_off(self) -> list[Run]:
        if not self.part.exists():
            raise SystemExit(f"{self.name}: --resume: no run was cut off here; measure without it")
        stored = json.loads(self.part.read_text())
        if not self.place["commit"]:
            raise SystemExit(f"{self.name}: --resume: no git checkout, so the tree may be another one")
        for what, now in self.place.items():
            if (then := stored["place"].get(what)) != now:
                raise SystemExit(
                    f"{self.name}: --resume: the run that was cut off has {what} {then!r}, "
                    f"now it is {now!r}; measure without --resume"
                )
        runs: list[Run] = stored["runs"]
        return runs


def label(key: Mapping[str, Any]) -> str:
    """A run's key in words."""
    return ", ".join(f"{name} {value}" for name, value in key.items() if isinstance(value, str | int))


def _is_of(run: Run, key: Mapping[str, Any]) -> bool:
    return all(run.get(name) == value for name, value in key.items())


def _place() -> dict[str, Any]:
    """What may not change between the parts of one run."""
    where = machine()
    return {name: where[name] for name in ("machine", "system")} | {
        "host": platform.node(),
        "commit": commit(),
    }


def _shown(run: Run) -> tuple[str, str, str, str]:
    conditions = run["conditions"]
    status = " then ".join([*run.get("earlier", []), run["status"]])
    return conditions["row"], status, conditions["commit"] or "unknown", conditions["date"]


def load_and_speed(loop_turns: int = LOOP_TURNS) -> dict[str, float]:
    """How busy and how fast this machine is now: load average, and the seconds of a plain loop.

    The loop has an interpreter of its own, on this thread's cores: runs beside each other do not wait for it.
    """
    load = os.getloadavg()[0]
    command = [sys.executable, "-S", "-c", LOOP, str(loop_turns)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {"load": load, "loop_s": float(done.stdout)}
