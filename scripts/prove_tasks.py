"""Prove tasks on real desktops, without database or queue: oracle = 1.0 and doing nothing = 0.0.

    python scripts/prove_tasks.py [--family colour] [--limit 20] [--desktops 2]
    python scripts/prove_tasks.py --task-set desk-office --image office --rounds 3
    python scripts/prove_tasks.py --task-set windows-keyboard --provider windows --image windows

Starts its own desk host, prints a line per family and every task that fails in one of the rounds; exits 1 if
one does. Tasks that need programs which these desktops lack are left out.
"""

from __future__ import annotations

import argparse
import itertools
import os
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from testing.desk_host_process import HostFailed, running_host
from testing.workers.prove_task import Proof, prove
from training.content.task_sets.registry import GENERATORS
from training.contracts.config import DEFAULT_PROVIDER, DesktopConfig
from training.contracts.config.providers.desk_host_registry import DESK_HOST
from training.contracts.types import Task
from training.tasks.supported_by.runtimes import reason_unsupported, runtime_of
from workers.desktops.contract import DesktopSpec, EnvError
from workers.desktops.host.client import DeskHostClient
from workers.desktops.leased_desktop import DesktopEnv
from workers.tasks.errors import TaskError

Outcome = TypeVar("Outcome")
DATA_DIR = Path(os.environ.get("DESKHAND_DATA_DIR") or Path(__file__).resolve().parent.parent / "var")


def desktops_of(options: argparse.Namespace) -> DesktopConfig:
    """The desktops asked for."""
    section = {options.provider: {"image": options.image}} if options.image else {}
    return DesktopConfig.model_validate({"provider": options.provider, **section})


def chosen(options: argparse.Namespace) -> Iterator[Task]:
    """The tasks asked for that these desktops can run, spread evenly over each family."""
    families: dict[str, list[Task]] = defaultdict(list)
    runtime = runtime_of(desktops_of(options))
    for task in GENERATORS[options.task_set](options.seed):
        if task.task_id.split("/", 1)[1].startswith(options.family) and not reason_unsupported(runtime, task):
            families[task.family].append(task)
    for tasks in families.values():
        count = min(options.limit or len(tasks), len(tasks))
        yield from (tasks[len(tasks) * i // count] for i in range(count))


def work(
    options: argparse.Namespace,
    socket: Path,
    todo: SimpleQueue[Task],
    attempt: Callable[[Task, DesktopEnv], Outcome],
    done: list[Outcome],
    failures: list[str],
) -> None:
    """One desktop: attempts tasks until none is left."""
    client = DeskHostClient(socket)
    first = next(chosen(options))
    fields = desktops_of(options).provider_section.desktop_fields()
    spec = DesktopSpec(width=first.screen[0], height=first.screen[1], **fields)
    try:
        lease = client.acquire(options.provider, spec, holder="prove_tasks", ttl_s=3600)
    except EnvError as error:
        failures.append(f"no desktop: {error}")
        return
    with DesktopEnv(client, lease) as env:
        while True:
            try:
                task = todo.get_nowait()
            except Empty:
                return
            try:
                done.append(attempt(task, env))
            except (TaskError, EnvError) as error:
                failures.append(f"{task.task_id}: {error}")


def report(done: list[Proof], failures: list[str], wall_s: float) -> bool:
    families: dict[str, list[Proof]] = defaultdict(list)
    for proof in done:
        families[proof.task_id.split("/")[1]].append(proof)
        if not proof.holds:
            failures.append(f"{proof.task_id}: oracle {proof.oracle_score}, idle {proof.idle_score}")
    for name, proofs in families.items():
        oracle, idle = sum(p.oracle_score == 1 for p in proofs), sum(p.idle_score == 0 for p in proofs)
        median = statistics.median(p.wall_s for p in proofs)
        print(
            f"{name:8} {len(proofs):4} tasks  oracle 1.0: {oracle}  idle 0.0: {idle}  median {median:.2f} s"
        )
    print(f"{len(done)} tasks in {wall_s:.0f} s")
    for line in failures:
        print("FAILED", line)
    return not failures


def attempt_all(
    options: argparse.Namespace, socket: Path, attempt: Callable[[Task, DesktopEnv], Outcome]
) -> tuple[list[Outcome], list[str]]:
    """What the attempts at all tasks gave, and why others gave nothing."""
    todo: SimpleQueue[Task] = SimpleQueue()
    for task in itertools.chain.from_iterable(itertools.repeat(list(chosen(options)), options.rounds)):
        todo.put(task)
    done: list[Outcome] = []
    failures: list[str] = []
    arguments = (options, socket, todo, attempt, done, failures)
    threads = [threading.Thread(target=work, args=arguments, daemon=True) for _ in range(options.desktops)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return done, failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--family", default="", help="or the beginning of the ids within the set, e.g. calc/sort"
    )
    parser.add_argument("--limit", type=int, default=0, help="tasks per family; 0 = all")
    parser.add_argument("--rounds", type=int, default=1, help="proofs of each task")
    parser.add_argument("--desktops", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--task-set", choices=sorted(GENERATORS), default="first-desk")
    parser.add_argument("--provider", default=DEFAULT_PROVIDER, choices=sorted(DESK_HOST))
    parser.add_argument("--image", default="", help="desktops.PROVIDER.image")
    options = parser.parse_args()
    if next(chosen(options), None) is None:
        parser.error(f"--family: {options.task_set} has no family {options.family!r}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the desk host is stopped too
    started = time.monotonic()
    places = ["--images", str(DATA_DIR / "images"), "--templates", str(DATA_DIR / "templates")]
    with tempfile.TemporaryDirectory(prefix="desk-") as folder:
        try:
            with running_host(Path(folder), *places):
                done, failures = attempt_all(options, Path(folder) / "s", prove)
        except HostFailed as error:
            sys.stderr.write(f"{error}\n")
            return 1
    return 0 if report(done, failures, time.monotonic() - started) else 1


if __name__ == "__main__":
    sys.exit(main())
