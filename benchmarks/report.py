"""What every benchmark ends with: a table, one JSON line, a result file, and its exit status."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Aligned columns; numbers to the right."""
    cells = [[str(cell) for cell in row] for row in [header, *rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    for index, row in enumerate(cells):
        print("  ".join(_aligned(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip())
        if index == 0:
            print("  ".join("-" * width for width in widths))


def finish(name: str, figures: dict[str, Any], *, passed: bool, results: Path = RESULTS) -> int:
    """Write results/NAME.json with machine and date, print it as the last line, return the exit status.

    Call it last: `sys.exit(finish("loss_parity", figures, passed=worst < 1e-5))`.
    """
    record = write_result(name, figures, passed=passed, results=results)
    sys.stdout.flush()
    print(json.dumps(record))
    return 0 if passed else 1


def write_result(
    name: str, figures: dict[str, Any], *, passed: bool, results: Path = RESULTS
) -> dict[str, Any]:
    """Write results/NAME.json with machine and date, whole or not at all; returns what it holds."""
    record = {"benchmark": name, "passed": passed, "figures": figures} | machine()
    results.mkdir(parents=True, exist_ok=True)
    part = results / f".{name}.json"
    part.write_text(json.dumps(record, indent=2) + "\n")
    part.replace(results / f"{name}.json")
    return record


def machine() -> dict[str, Any]:
    """Where and when a figure was measured."""
    return {
        "machine": f"{_processor()}, {os.cpu_count()} cores, {_memory_gib()} GiB",
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of the values do not exceed. Raises ValueError for none."""
    if not values:
        raise ValueError("percentile of no values")
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1))]


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory_gib() -> int:
    return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30)


def _aligned(cell: str, width: int) -> str:
    is_number = cell[:1].isdigit() or cell[:1] in "-+." and cell[1:2].isdigit()
    return cell.rjust(width) if is_number else cell.ljust(width)
