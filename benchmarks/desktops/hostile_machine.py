"""The attacks of `hostile_desktop` inside real virtual machines: `... hostile_desktop --provider qemu`.

Needs the image that `make guest-image` builds. A whole machine boots once, and one without each of the
defences. A clone of the whole one takes all attacks, one after the other, and is replaced where an attack is
on the reset; each attack that may ruin its machine gets a clone of the one that lacks its defence for itself.
Bar: none succeeds on a whole machine; each does without its defence; the next lease is clean; no process and
no folder is left.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.report import percentile, print_table
from testing.hostile_desktop.machine_attacks import machine_attacks
from testing.hostile_desktop.machine_stage import Machines, make
from testing.hostile_desktop.run_attacks import Verdict
from testing.hostile_desktop.run_machine_attacks import verdicts
from testing.hostile_desktop.stage import canaries

MIN_ATTACKS = 40
TEMPLATES = "DESKHAND_TEMPLATES_DIR"
"""Kept between runs where it is named: then nothing boots."""
ROUNDS = 8


def images(root: Path) -> Path:
    """Where the images are that this checkout or this installation built."""
    return Path(os.environ.get("DESKHAND_IMAGES_DIR") or root / "var" / "images").resolve()


def folders(root: Path) -> list[Path]:
    """What an ordinary user must be given to run this."""
    kept = os.environ.get(TEMPLATES)
    return [images(root), *([Path(kept)] if kept else [])]


def measure(root: Path) -> dict[str, Any]:
    with ExitStack() as stack:
        templates = os.environ.get(TEMPLATES) or stack.enter_context(
            tempfile.TemporaryDirectory(prefix="dh-")
        )
        machines = Machines(images(root), Path(templates), stack.enter_context(canaries()))
        rows, times = asyncio.run(attack_both(machines))
        left = [path.name for path in machines.canary.folder.iterdir() if path.is_dir()]
    by_defence = [strong.without for strong, _ in rows]
    return {
        "attacks": len(rows),
        "succeeded": [strong.name for strong, _ in rows if strong.succeeded],
        "not_clean_afterwards": [strong.name for strong, _ in rows if not strong.is_next_clean],
        "harmless_without_their_defence": [weak.name for _, weak in rows if not weak.succeeded],
        "folders_left": left,
        "by_defence": {name: by_defence.count(name) for name in sorted(set(by_defence))},
        "names": [strong.name for strong, _ in rows],
        "checked_clone_ms": {"p50": round(percentile(times, 0.5)), "p90": round(percentile(times, 0.9))},
        "load": round(os.getloadavg()[0], 1),
    }


async def attack_both(machines: Machines) -> tuple[list[tuple[Verdict, Verdict]], list[float]]:
    """Verdicts with all defences and without one, and milliseconds from nothing to a checked clone."""
    strong = await attack(machines, weakened=False)
    without = await attack(machines, weakened=True)
    times = []
    for _ in range(ROUNDS):
        started = time.monotonic()
        machine = await make(machines.provider(frozenset()), machines.canary)
        times.append((time.monotonic() - started) * 1000)
        await machine.destroy()
    return [(verdict, without[name]) for name, verdict in strong.items()], times


async def attack(machines: Machines, *, weakened: bool) -> dict[str, Verdict]:
    attacks = machine_attacks(machines.canary)
    return {
        verdict.name: tell(verdict, weakened=weakened)
        async for verdict in verdicts(machines, attacks, weakened=weakened)
    }


def tell(verdict: Verdict, *, weakened: bool) -> Verdict:
    where = f"without {verdict.without}" if weakened else "whole"
    word = "succeeded" if verdict.succeeded else "failed"
    word += "" if verdict.is_next_clean else ", and left something"
    print(f"{where:16} {verdict.name}: {word} ({verdict.report[:80]})", flush=True)
    return verdict


def held(figures: dict[str, Any]) -> bool:
    """Whether the bar is met; prints the table."""
    worst = ("succeeded", "not_clean_afterwards", "harmless_without_their_defence", "folders_left")
    rows = [(name.replace("_", " "), "0", len(figures[name])) for name in worst]
    print_table(("what", "bar", "found"), [("attacks", f">= {MIN_ATTACKS}", figures["attacks"]), *rows])
    return figures["attacks"] >= MIN_ATTACKS and not any(figures[name] for name in worst)
