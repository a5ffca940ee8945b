"""Several workers on one data folder: a new one ends what dead ones left, and nothing of a live one."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testing.paths import REPOSITORY
from workers.processes.process_group import start_ticks
from workers.processes.record_owners import OwnedRecords, OwnerLives

WORKER = """
import os, sys, time
from pathlib import Path
from workers.processes.logged_process import LoggedProcess
from workers.processes.record_owners import OwnedRecords
root, owner = Path(sys.argv[1]), sys.argv[2]
owned = OwnedRecords(root, owner)
owned.claim()
stubborn = ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"]
options = {"log_path": root / f"{owner}.log", "env": dict(os.environ), "cwd": root}
child = LoggedProcess("trainer", stubborn, records=owned.records, **options)
while not child.tail():
    time.sleep(0.02)
print(child.process.pid, flush=True)
sys.stdin.read()
"""
"""A gpu worker whose trainer ignores that its parent ended."""


class Worker:
    """A process of its own that holds its name and runs a child."""

    def __init__(self, root: Path, owner: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(root), owner],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        self.child = int(self.process.stdout.readline())

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    @property
    def child_lives(self) -> bool:
        return start_ticks(self.child) is not None


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    for owner in ("a@here", "b@here", "c@elsewhere"):
        OwnedRecords(tmp_path, owner).records.sweep()


def test_a_second_worker_leaves_the_first_ones_children_alone(root: Path) -> None:
    first = Worker(root, "a@here")
    second = OwnedRecords(root, "b@here")
    second.claim()
    assert second.sweep(grace_s=0.1) == 0
    assert first.child_lives
    first.kill()
    assert first.child_lives
    assert second.sweep(grace_s=0.1) == 1
    assert not first.child_lives


def test_a_worker_that_comes_back_ends_what_it_left(root: Path) -> None:
    first = Worker(root, "a@here")
    first.kill()
    again = OwnedRecords(root, "a@here")
    again.claim()
    assert again.sweep(grace_s=0.1) == 1
    assert not first.child_lives


def test_pids_of_another_machine_mean_nothing_here(root: Path) -> None:
    elsewhere = Worker(root, "c@elsewhere")
    elsewhere.kill()
    here = OwnedRecords(root, "a@here")
    here.claim()
    assert here.sweep(grace_s=0.1) == 0
    assert elsewhere.child_lives


def test_a_name_has_one_worker(root: Path) -> None:
    first = Worker(root, "a@here")
    with pytest.raises(OwnerLives, match="a worker named a@here is at work .* another name"):
        OwnedRecords(root, "a@here").claim(limit_s=0)
    first.kill()
    OwnedRecords(root, "a@here").claim()
