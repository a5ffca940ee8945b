"""What every benchmark ends with: a table, one JSON line, a result file, and its exit status."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"
MEASURED = ("benchmarks/results", "docs/images")
"""What benchmarks write themselves: no change of the tree that they measure."""
COMMIT_VARIABLE = "DESKHAND_BENCHMARK_COMMIT"
"""The answer of `commit` for a process that cannot read the checkout's git folder."""


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
    record = {"benchmark": name, "passed": passed, "figures": figures, "commit": commit()} | machine()
    results.mkdir(parents=True, exist_ok=True)
    write_whole(results / f"{name}.json", record)
    return record


def write_whole(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON file, whole or not at all."""
    part = path.with_name(f".{path.name}")
    part.write_text(json.dumps(content, indent=2) + "\n")
    part.replace(path)


def stamp() -> dict[str, Any]:
    """What a row says of itself where a result file keeps rows of several calls."""
    return {"commit": commit()} | machine()


def of_this_tree(rows: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The stamped rows that were measured here on this very tree: others are a record, and not judged."""
    here = stamp()
    same = ("commit", "machine", "system")
    return {
        name: row
        for name, row in rows.items()
        if here["commit"] and all(row.get(what) == here[what] for what in same)
    }


def machine() -> dict[str, Any]:
    """Where and when a figure was measured."""
    return {
        "machine": f"{_processor()}, {os.cpu_count()} cores, {_memory_gib()} GiB",
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def commit(checkout: Path = RESULTS) -> str:
    """The tree that is measured: `ff9b6015`, or `ff9b6015-dirty-` and a digest of what was changed since.

    "" outside a git checkout.
    """
    if known := os.environ.get(COMMIT_VARIABLE):
        return known
    top = _git(checkout, "rev-parse", "--show-toplevel").decode().strip()
    if not top:
        return ""
    head = _git(checkout, "describe", "--always").decode().strip()
    others = [".", *(f":(exclude){folder}" for folder in MEASURED)]
    changes = _git(Path(top), "diff", "--binary", "HEAD", "--", *others)
    names = _git(Path(top), "ls-files", "--others", "--exclude-standard", "-z", "--", *others).split(b"\0")
    for name in filter(None, names):
        changes += name + b"\0" + (Path(top) / os.fsdecode(name)).read_bytes()
    return f"{head}-dirty-{hashlib.sha256(changes).hexdigest()[:8]}" if changes else head


def _git(folder: Path, *arguments: str) -> bytes:
    """What git prints; nothing when it fails. The checkout may be another user's."""
    command = ["git", "-c", "safe.directory=*", "-C", str(folder), *arguments]
    try:
        return subprocess.run(command, capture_output=True, check=False).stdout
    except FileNotFoundError:
        return b""


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
