"""Import of a whole OSWorld checkout: what comes in, what is refused, and what each runtime can run.

    python -m benchmarks.osworld.task_import CHECKOUT

Bar: every task of the index comes in; each that a runtime cannot run has its reason.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from benchmarks.finished_runs import load_and_speed
from benchmarks.report import finish, print_table
from training.contracts.types import Task
from training.tasks.importers import load_tasks
from training.tasks.supported_by.osworld import INTERNET, NO_NETWORK
from training.tasks.supported_by.runtimes import TaskRuntime, grouped_reasons, reasons_unsupported
from training.tasks.task_json import LoadError

MAX_REASONS = 15
OFFICE = TaskRuntime.OSWORLD_OFFICE.value
BAR = 0.85
"""Share of the tasks that is to run on debian-office; reported, no failure: the docs say what is missing."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("checkout", type=Path)
    path = parser.parse_args().checkout
    begun = time.perf_counter()
    try:
        loaded = load_tasks(path)
    except LoadError as error:
        sys.exit(f"CHECKOUT: {error}")
    seconds = time.perf_counter() - begun
    reasons = [(task, reasons_unsupported(task)) for task in loaded.tasks]
    runnable = {runtime.value: _by_family(reasons, runtime) for runtime in TaskRuntime}
    families = sorted({task.family for task in loaded.tasks})
    print_table(
        ("domain", *runnable),
        [(family, *(runnable[runtime][family] for runtime in runnable)) for family in families],
    )
    missing = {runtime.value: _most_common(reasons, runtime) for runtime in TaskRuntime}
    for task, found in reasons:
        if found[OFFICE]:
            print(f"not on debian-office: {task.task_id}: {found[OFFICE]}")
    for reason in loaded.refused:
        print(f"refused {reason}")
    return finish(
        "osworld_import",
        passed=not loaded.refused,
        figures={
            "num_tasks": len(loaded.tasks),
            "refused": loaded.refused,
            "runnable": {runtime: sum(counts.values()) for runtime, counts in runnable.items()},
            "runnable_by_domain": {runtime: dict(counts) for runtime, counts in runnable.items()},
            "most_common_reasons": missing,
            "missing_together_on_debian_office": _missing_together(reasons),
            "debian_office": _office_figures(reasons),
            "not_runnable_on_debian_office": {
                task.task_id: missing[OFFICE] for task, missing in reasons if missing[OFFICE]
            },
            "read_s": round(seconds, 2),
            **load_and_speed(),
        },
    )


def _by_family(reasons: list[tuple[Task, dict[str, str]]], runtime: TaskRuntime) -> Counter[str]:
    return Counter(task.family for task, missing in reasons if not missing[runtime])


def _most_common(reasons: list[tuple[Task, dict[str, str]]], runtime: TaskRuntime) -> dict[str, int]:
    """Reason without its place in the task -> tasks that have it."""
    groups = grouped_reasons((task.task_id, missing[runtime]) for task, missing in reasons)
    return {group.reason: len(group.task_ids) for group in groups[:MAX_REASONS]}


def _missing_together(reasons: list[tuple[Task, dict[str, str]]]) -> dict[str, int]:
    """What has to be supplied, as a whole, for a task to run on debian-office -> tasks."""
    counts: Counter[str] = Counter()
    for _, missing in reasons:
        parts = {_without_place(part) for part in missing[TaskRuntime.OSWORLD_OFFICE].split("; ") if part}
        if parts:
            counts["; ".join(sorted(parts))] += 1
    return dict(counts.most_common(MAX_REASONS))


def _office_figures(reasons: list[tuple[Task, dict[str, str]]]) -> dict[str, float]:
    """Tasks that run on a machine of debian-office, which has no internet; and those that only lack that."""
    parts = [[part for part in missing[OFFICE].split("; ") if part] for _, missing in reasons]
    runnable = sum(not found for found in parts)
    only_network = sum(
        bool(found) and all(NO_NETWORK in part or INTERNET in part for part in found) for found in parts
    )
    return {
        "runnable": runnable,
        "share": round(runnable / len(parts), 3),
        "only_the_internet_is_missing": only_network,
        "share_with_internet": round((runnable + only_network) / len(parts), 3),
        "bar": BAR,
    }


def _without_place(reason: str) -> str:
    """A reason without its place in the task, and without the function that it is told of."""
    return reason.rsplit(": ", 1)[-1]


if __name__ == "__main__":
    sys.exit(main())
