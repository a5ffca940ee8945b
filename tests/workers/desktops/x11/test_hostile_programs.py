"""Programs that attack their desktop fail against the sandbox, and succeed where a defence is left out."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from testing.desk_host_process import ROOT
from testing.hostile_desktop.run_attacks import all_attacks
from testing.hostile_desktop.stage import Canaries

pytestmark = [pytest.mark.desktop, pytest.mark.timeout(900)]
QUICK = (
    "answer through the agent's stolen socket",
    "write into the output of the evaluator's command",
    "poison the X server",
    "swap the mouse buttons",
    "make a user namespace",
    "take a process's open file",
    "reach an abstract socket",
    "put a pipe in a file's place while it is read",
    "close the file to the evaluator",
    "fork without end",
)
SCRIPT = """
import asyncio, json, sys
from testing.hostile_desktop.run_attacks import all_attacks, run_attack
from testing.hostile_desktop.stage import canaries
async def main():
    with canaries() as canary:
        for attack in all_attacks(canary):
            if attack.name in sys.argv[1:]:
                strong = await run_attack(attack, canary, weakened=False)
                weak = await run_attack(attack, canary, weakened=True)
                row = [attack.name, strong.succeeded, strong.is_next_clean, weak.succeeded]
                print(json.dumps(row), flush=True)
asyncio.run(main())
"""


def names() -> list[str]:
    return [attack.name for attack in all_attacks(Canaries(ROOT, addresses=dict.fromkeys(
        ("tcp", "tcp6"), 1) | {"abstract": "a", "path": "/p"}))]  # fmt: skip


def attack(wanted: list[str]) -> dict[str, list[bool]]:
    """name -> [succeeded, next lease clean, succeeds without its defence], as desktops really run."""
    environment = {name: value for name, value in os.environ.items() if name != "DESKHAND_DATA_DIR"}
    argv = [sys.executable, "-c", SCRIPT, *wanted]
    if os.geteuid() == 0:
        start = (
            "import sys; from pathlib import Path; from workers.processes.own_account import *;"
            "go_on_as(own_account(), sys.argv[1:], shown=[Path.cwd()], home=Path('/tmp'))"
        )
        argv = [sys.executable, "-c", start, *argv]
    done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return {row[0]: row[1:] for row in map(json.loads, done.stdout.splitlines())}


def expect_all_held(wanted: list[str]) -> None:
    found = attack(wanted)
    assert list(found) == [name for name in names() if name in wanted]
    assert {name: row for name, row in found.items() if row != [False, True, True]} == {}


def test_attacks_of_every_kind_fail_and_each_succeeds_without_its_defence() -> None:
    expect_all_held(list(QUICK))


@pytest.mark.slow
def test_all_attacks_fail_and_each_succeeds_without_its_defence() -> None:
    expect_all_held([name for name in names() if name not in QUICK])


def test_there_are_as_many_attacks_as_promised() -> None:
    assert len(names()) == len(set(names())) >= 76
    assert set(QUICK) <= set(names())
