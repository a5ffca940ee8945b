"""Plant each mistake of the list and see whether the tests notice it.

    python -m scripts.mutants [--jobs 2] [--area losses] [--file PATTERN] [--sample 5] [--wide] [--resume]

Not mutmut or cosmic-ray: they try thousands of changes of one file with one command, and starting the tests
of a Django application for each takes days. Each change here is a mistake that a person could make; its own
tests run first, from a warm process, and --wide tries the room's tests where those notice nothing.

Bar: >= 95 % of at least 150 changes noticed, on PostgreSQL too where SQL decides; each survivor explained.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from benchmarks.finished_runs import FinishedRuns, add_resume
from benchmarks.report import COMMIT_VARIABLE, RESULTS, commit, print_table
from scripts.mutants.planted import REPOSITORY, BadList, Plant, planted
from scripts.mutants.try_plants import Bench, Greens, Verdict

MIN_PLANTS = 150
MIN_SHARE = 0.95
DATABASES = ("sqlite", "postgres")
LOOP_TURNS = 100_000


def main() -> int:
    options = parse()
    os.environ[COMMIT_VARIABLE] = commit()  # the copies are made once: what is edited meanwhile is not tried
    plants = [
        plant
        for plant in planted()
        if options.area in ("", plant.area) and re.search(options.file, plant.path)
    ]
    is_whole = len(plants) == len(planted()) and not options.sample
    for plant in plants:
        plant.mutated(REPOSITORY)
    if options.sample:
        plants = random.Random(options.seed).sample(plants, min(options.sample, len(plants)))
    budget = {"is_wide": options.wide, "databases": options.databases}
    runs = FinishedRuns(
        name="mutants", budget=budget, resume=options.resume, results=options.results, loop_turns=LOOP_TURNS
    )
    rows = try_all(plants, runs, options)
    return report(runs, rows, is_whole=is_whole)


def parse() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--jobs", type=int, default=1, help="copies of the tree, beside each other")
    arguments.add_argument("--area", default="", help="only this list of changes")
    arguments.add_argument("--file", default="", help="only files whose path this pattern finds")
    arguments.add_argument("--sample", type=int, default=0, help="only this number, chosen by --seed")
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--databases", nargs="+", choices=DATABASES, default=list(DATABASES))
    arguments.add_argument("--wide", action="store_true", help="also the tests of the room")
    arguments.add_argument("--results", type=Path, default=RESULTS, help="folder of the result file")
    add_resume(arguments)
    return arguments.parse_args()


def try_all(plants: list[Plant], runs: FinishedRuns, options: argparse.Namespace) -> list[dict[str, Any]]:
    """A row per change and database."""
    lanes = [
        (plant, database)
        for plant in plants
        for database in options.databases
        if database == "sqlite" or plant.on_postgres
    ]
    random.Random(options.seed).shuffle(lanes)  # one that is cut off has tried something of every area
    benches: SimpleQueue[Bench] = SimpleQueue()

    def attempt(lane: tuple[Plant, str]) -> dict[str, Any]:
        plant, database = lane
        bench = benches.get()
        try:
            return runs.once(
                key_of(plant, database), lambda: row_of(bench, plant, database, is_wide=options.wide)
            )
        finally:
            benches.put(bench)

    greens = Greens()
    with tempfile.TemporaryDirectory(prefix="mutants-") as name, ThreadPoolExecutor(options.jobs) as threads:
        folder = Path(name)
        made = [
            Bench(folder / f"copy{place}", folder / "migrated.sqlite3", greens)
            for place in range(options.jobs)
        ]
        for bench in made:
            benches.put(bench)
        try:
            return list(threads.map(attempt, lanes))
        finally:
            for bench in made:
                bench.end()


def key_of(plant: Plant, database: str) -> dict[str, str]:
    return {"area": plant.area, "file": plant.path, "change": plant.shown, "database": database}


def row_of(bench: Bench, plant: Plant, database: str, *, is_wide: bool) -> dict[str, Any]:
    """A row of the result file; `by` says what is wrong with a change that cannot be judged."""
    try:
        found = bench.judge(plant, database, is_wide=is_wide)
    except BadList as error:
        found = Verdict("broken", str(error), 0.0)
    print(f"{found.outcome:9} {plant.path}: {plant.shown[:110]}", flush=True)
    return found._asdict() | {"reason": plant.reason, "status": "finished"}


def report(runs: FinishedRuns, rows: list[dict[str, Any]], *, is_whole: bool) -> int:
    """The table by area, the survivors, and the exit status."""
    by_outcome: dict[str, list[dict[str, Any]]] = {"survived": [], "broken": []}
    for row in rows:
        by_outcome.setdefault(row["outcome"], []).append(row)
    survived, broken = by_outcome["survived"], by_outcome["broken"]
    tried, missed = (Counter(row["area"] for row in some) for some in (rows, survived))
    print_table(
        ("area", "tried", "noticed"), [(area, tried[area], tried[area] - missed[area]) for area in tried]
    )
    for row in broken:
        print(f"BROKEN: {row['by']}")
    for row in survived:
        print(
            f"SURVIVED on {row['database']}: {row['file']}: {row['change']}: {row['reason'] or 'no reason'}"
        )
    changes, left = ({(row["file"], row["change"]) for row in some} for some in (rows, survived))
    share = 1 - len(left) / max(len(changes), 1)
    print(f"{share:.1%} of {len(changes)} changes noticed, bar {MIN_SHARE:.0%} of {MIN_PLANTS}")
    is_enough = not is_whole or len(changes) >= MIN_PLANTS
    passed = not broken and is_enough and share >= MIN_SHARE and all(row["reason"] for row in survived)
    figures = {"changes": len(changes), "share_noticed": round(share, 4), "is_whole_list": is_whole}
    return runs.finish(passed=passed, **figures)


if __name__ == "__main__":
    sys.exit(main())
