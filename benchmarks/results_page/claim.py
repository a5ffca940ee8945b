"""One row of the page, and how its numbers are written."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.report import RESULTS

Figures = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What one result file is for."""

    result: str
    """Its path below benchmarks/results, without .json."""
    says: str
    figure: Callable[[Figures], str]
    n: Callable[[Figures], str]
    missed: tuple[str, ...] = ()
    """The bars that were missed, in plain words; empty where the result passed."""


def read(name: str) -> Figures:
    """A whole result file."""
    record: Figures = json.loads((RESULTS / f"{name}.json").read_text())
    return record


def percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


def number(value: float) -> str:
    """Three digits that count, with a space between thousands."""
    if abs(value) >= 100:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.3g}"


def each(values: Iterable[str]) -> str:
    return ", ".join(values)


def success(evaluation: Figures) -> str:
    """A share with its 95 % interval: `91 % [86, 94]`."""
    low, high = (f"{evaluation[end] * 100:.0f}" for end in ("low", "high"))
    return f"{percent(evaluation['success'])} [{low}, {high}]"


def mean(values: Iterable[float]) -> float:
    return statistics.fmean(values)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
