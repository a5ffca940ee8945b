"""The attacks of `hostile_desktop` inside real virtual machines: `... hostile_desktop --provider qemu`.

Needs the image that `make guest-image` builds. A whole machine boots once, and one without each of the
defences; each attack gets a clone of both for itself.
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

from benchmarks.desktops.attack_rows import all_held, measure_attacks, middle_and_tail, runs_of, sum_up
from testing.hostile_desktop.machine_attacks import machine_attacks
from testing.hostile_desktop.machine_stage import Machines, make
from testing.hostile_desktop.run_attacks import Verdict
from testing.hostile_desktop.run_machine_attacks import verdicts
from testing.hostile_desktop.stage import Attack, canaries

NAME = "hostile_machine"
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


def measure(root: Path, *, resume: bool) -> int:
    runs = runs_of(NAME, resume=resume)
    with ExitStack() as stack:
        templates = os.environ.get(TEMPLATES) or stack.enter_context(
            tempfile.TemporaryDirectory(prefix="dh-")
        )
        canary = stack.enter_context(canaries())
        machines = Machines(images(root), Path(templates), canary)
        rows = measure_attacks(
            runs, machine_attacks(canary), lambda attack: asyncio.run(try_twice(machines, attack))
        )
        clones = runs.once(
            {"attack": "none: what clones cost"}, lambda: asyncio.run(measure_clones(machines))
        )
        figures = sum_up(rows, canary) | {"checked_clone_ms": clones["checked_clone_ms"]}
    return runs.finish(passed=all_held(figures), **figures)


async def try_twice(machines: Machines, attack: Attack) -> tuple[Verdict, bool]:
    (strong,) = [found async for found in verdicts(machines, (attack,), weakened=False)]
    (weak,) = [found async for found in verdicts(machines, (attack,), weakened=True)]
    print(f"whole: {strong.report[:80]!r}, without {attack.without}: {weak.report[:80]!r}", flush=True)
    return strong, weak.succeeded


async def measure_clones(machines: Machines) -> dict[str, Any]:
    """Milliseconds from nothing to a checked clone."""
    times = []
    for _ in range(ROUNDS):
        started = time.monotonic()
        machine = await make(machines.provider(frozenset()), machines.canary)
        times.append((time.monotonic() - started) * 1000)
        await machine.destroy()
    return {"checked_clone_ms": middle_and_tail(times), "status": "finished"}
