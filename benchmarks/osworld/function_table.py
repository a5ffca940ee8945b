"""The table of OSWorld's functions in docs/osworld.md: what runs on our desktops, at which level, why not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.osworld.tasks import FAMILIES
from training.contracts.task import as_list
from training.tasks.supported_by.desktop_programs import office_machine
from training.tasks.supported_by.osworld import HOST_CODE, desktop_gap, library_gap

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs" / "osworld.md"
BEGIN, END = "<!-- made by benchmarks/osworld/compat.py: begin -->", "<!-- end -->"
LEVELS = ("lite", "office", "full")
TITLES = {"setup": "Setup steps", "getters": "Getters", "metrics": "Metrics"}


def level_of(needs: tuple[str, ...]) -> str:
    """The lowest level that has all the packages."""
    return next(level for level in LEVELS if {need.lower() for need in needs} <= packages(level))


def packages(level: str) -> set[str]:
    lines = (REPOSITORY / "requirements" / f"osworld-{level}.txt").read_text().splitlines()
    return {line.partition("==")[0].lower() for line in lines if not line.startswith("#")}


def verdict(kind: str, name: str) -> tuple[str, str]:
    """(yes | no | on request, why) on machines of the image debian-office."""
    if gap := library_gap(kind, name) or desktop_gap(kind, name, office_machine()):
        return "no", gap
    if why := HOST_CODE.get((kind, name)):
        return "on request", f"{why}; desktops.osworld.allow_host_code"
    if (kind, name) == ("setup", "download"):
        return "yes", "the env worker downloads; without a network from the folder of downloads"
    return "yes", ""


def summary(functions: Any) -> dict[str, dict[str, int]]:
    """kind -> how many there are and how many run on our desktops."""
    made = {}
    for kind in TITLES:
        entries = getattr(functions, kind)
        here = sum(verdict(kind, entry.name)[0] == "yes" for entry in entries)
        made[kind] = {"all": len(entries), "here": here}
    return made


def write_page(functions: Any, found: dict[str, Any]) -> None:
    """Put the tables into the page, between its marks."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    body = "\n".join(_lines(functions, found))
    PAGE.write_text(f"{before}{BEGIN}\n{body}\n{END}{after}")


def _lines(functions: Any, found: dict[str, Any]) -> Iterator[str]:
    counts = summary(functions)
    yield "| | in desktop-env 1.0.2 | run on our desktops |"
    yield "|---|---|---|"
    for kind, title in TITLES.items():
        yield f"| {title} | {counts[kind]['all']} | {counts[kind]['here']} |"
    proofs = _proofs(found)
    for kind, title in TITLES.items():
        yield f"\n#### {title}\n"
        yield "| name | module | level | here | why not, or how it was proved |"
        yield "|---|---|---|---|---|"
        for entry in getattr(functions, kind):
            here, why = verdict(kind, entry.name)
            proof = proofs.get((kind, entry.name), "")
            yield f"| {entry.name} | {entry.module} | {level_of(entry.needs)} | {here} | {why or proof} |"


def _proofs(found: dict[str, Any]) -> dict[tuple[str, str], str]:
    """(kind, name) -> the task that used it and scored 1.0 and 0.0, and where."""
    proofs: dict[tuple[str, str], str] = {}
    for family in FAMILIES:
        places = [
            provider
            for provider, figures in found.items()
            if (row := figures["families"].get(family.name)) and (row["oracle"], row["idle"]) == (1.0, 0.0)
        ]
        if not places:
            continue
        for key in _used(family.evaluator):
            proofs.setdefault(key, f'task "{family.name}" on {", ".join(places)}')
    steps = [("setup", name) for name in ("upload_file", "launch", "execute", "activate_window", "sleep")]
    return proofs | {step: "every task" for step in steps if proofs}


def _used(evaluator: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name in as_list(evaluator["func"]):
        yield "metrics", name
    for key in ("result", "expected"):
        for getter in as_list(evaluator.get(key)):
            yield "getters", getter["type"]
