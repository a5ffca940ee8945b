"""Prove desk-office on real desktops, and score doing nothing, guessing and the oracle by family.

    python -m benchmarks.desktops.desk_office [--provider qemu --image debian-office --limit 2 --rounds 1]

The bar: every task scores 1.0 by its oracle and 0.0 when nothing is done, in every round. Guessing means
clicks at random points, common keys and words of the instruction, until the task's limit of turns.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from benchmarks.report import finish, print_table
from scripts import prove_tasks
from testing.desk_host_process import running_host
from testing.workers.prove_task import IDLE, Proof, prove
from training.content.task_sets import desk_office
from training.contracts.types import Action, ActionKind, Task
from workers.desktops.contract import EnvError, ErrorKind
from workers.desktops.leased_desktop import DesktopEnv
from workers.tasks import prepare_and_score

KEYS = (
    ("Return",), ("Tab",), ("Escape",), ("Down",), ("Right",), ("Delete",), ("F2",), ("ctrl", "a"),
    ("ctrl", "s"), ("ctrl", "c"), ("ctrl", "v"), ("ctrl", "b"), ("alt", "f"), ("ctrl", "Home"),
)  # fmt: skip


def guess(rng: random.Random, task: Task) -> Action:
    """One action of an agent that does not look."""
    kind = rng.choice((ActionKind.CLICK, ActionKind.DOUBLE_CLICK, ActionKind.KEY, ActionKind.TYPE))
    if kind is ActionKind.KEY:
        return Action(kind=kind, keys=rng.choice(KEYS))
    if kind is ActionKind.TYPE:
        return Action(kind=kind, text=rng.choice(task.instruction.split()).strip('".,'))
    return Action(kind=kind, x=rng.randrange(task.screen[0]), y=rng.randrange(task.screen[1]))


def random_score(task: Task, env: DesktopEnv) -> tuple[str, float]:
    """(family, score) of guessing through all turns; what the desktop refuses counts as a turn."""
    rng = random.Random(task.task_id)
    env.reset()
    prepare_and_score.setup(task, env)
    env.observe()
    for _ in range(task.max_turns or 1):
        try:
            env.act(guess(rng, task))
        except EnvError as error:
            if error.kind is not ErrorKind.TASK:
                raise
        env.observe()
    return task.family, prepare_and_score.evaluate(task, env, IDLE)


def family_rows(proofs: list[Proof], guesses: list[tuple[str, float]]) -> dict[str, dict[str, float]]:
    by_family: dict[str, list[Proof]] = defaultdict(list)
    for proof in proofs:
        by_family[proof.task_id.split("/")[1]].append(proof)
    rows = {}
    for name, group in by_family.items():
        scores = [score for family, score in guesses if family == name]
        rows[name] = {
            "tasks": len({proof.task_id for proof in group}),
            "proofs": len(group),
            "oracle": round(statistics.fmean(proof.oracle_score for proof in group), 4),
            "nothing": round(statistics.fmean(proof.idle_score for proof in group), 4),
            "random": round(statistics.fmean(scores), 4) if scores else -1,
            "oracle_turns_median": statistics.median(proof.num_turns for proof in group),
            "proof_median_s": round(statistics.median(proof.wall_s for proof in group), 2),
        }
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--provider", default="x11")
    parser.add_argument("--image", default="office")
    parser.add_argument("--family", default="")
    parser.add_argument("--limit", type=int, default=0, help="tasks per family; 0 = all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--desktops", type=int, default=2)
    parser.add_argument("--without-random", action="store_true")
    options = parser.parse_args()
    options.task_set, options.seed = "desk-office", 0
    rounds, started, load = options.rounds, time.monotonic(), os.getloadavg()[0]
    places = ["--images", str(prove_tasks.DATA_DIR / "images")]
    places += ["--templates", str(prove_tasks.DATA_DIR / "templates")]
    with tempfile.TemporaryDirectory(prefix="desk-") as folder, running_host(Path(folder), *places):
        socket = Path(folder) / "s"
        proofs, failures = prove_tasks.attempt_all(options, socket, prove)
        proved_s = time.monotonic() - started
        options.rounds = 0 if options.without_random else 1
        guesses, refused = prove_tasks.attempt_all(options, socket, random_score)
    broken = sorted({proof.task_id for proof in proofs if not proof.holds})
    rows = family_rows(proofs, guesses)
    print_table(("family", *next(iter(rows.values()))), [(name, *row.values()) for name, row in rows.items()])
    for line in (*failures, *refused, *broken):
        print("FAILED", line)
    figures = {
        "provider": options.provider,
        "image": options.image,
        "tasks_of_the_set": len(desk_office.generate()),
        "tasks": len({proof.task_id for proof in proofs}),
        "rounds": rounds,
        "proofs": len(proofs),
        "failed": broken + failures,
        "guesses_failed": refused,
        "families": rows,
        "proofs_s": round(proved_s),
        "load_before_and_after": [round(load, 1), round(os.getloadavg()[0], 1)],
    }
    name = "desk_office" if options.provider == "x11" else f"desk_office_{options.provider}"
    return finish(name, figures, passed=not broken and not failures and bool(proofs))


if __name__ == "__main__":
    sys.exit(main())
