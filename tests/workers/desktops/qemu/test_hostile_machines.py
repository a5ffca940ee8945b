"""Programs that attack their virtual machine fail, and succeed in one without the defence."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from testing.desk_host_process import ROOT
from testing.hostile_desktop.machine_attacks import TRIES, machine_attacks
from testing.hostile_desktop.stage import Canaries

IMAGES = Path(os.environ.get("DESKHAND_IMAGES_DIR") or ROOT / "var" / "images")
missing = [name for name in ("qemu-system-x86_64", "qemu-img") if shutil.which(name) is None]
missing += [] if (IMAGES / "debian-desk" / "image.json").exists() else [f"a guest image in {IMAGES}"]
QUICK = (
    *(attack.name for attack in TRIES if attack.without in ("agent", "port")),
    "answer through the agent's stolen port",
    "stop the agent",
    "replace a program that the evaluator runs",
    "make files without end",
    "put a link to such a file in a file's place while it is read",
)
SCRIPT = """
import asyncio, json, sys, tempfile
from pathlib import Path
from testing.hostile_desktop.machine_attacks import machine_attacks
from testing.hostile_desktop.machine_stage import Machines
from testing.hostile_desktop.run_machine_attacks import verdicts
from testing.hostile_desktop.stage import canaries
async def main(images, names):
    with canaries() as canary, tempfile.TemporaryDirectory(prefix="dh-", dir="/tmp") as templates:
        machines = Machines(Path(images), Path(templates), canary)
        wanted = tuple(attack for attack in machine_attacks(canary) if attack.name in names)
        for weakened in (False, True):
            async for found in verdicts(machines, wanted, weakened=weakened):
                row = [weakened, found.name, found.succeeded, found.is_next_clean, found.report]
                print(json.dumps(row), flush=True)
asyncio.run(main(sys.argv[1], sys.argv[2:]))
"""


def names() -> list[str]:
    return [attack.name for attack in machine_attacks(Canaries(ROOT, addresses={"tcp": 1}))]


def expect_all_held(wanted: list[str]) -> None:
    """As desktops really run: by an ordinary user."""
    environment = {name: value for name, value in os.environ.items() if name != "DESKHAND_DATA_DIR"}
    argv = [sys.executable, "-c", SCRIPT, str(IMAGES), *wanted]
    if os.geteuid() == 0:
        start = (
            "import sys; from pathlib import Path; from workers.processes.own_account import *;"
            "account, images = own_account(), Path(sys.argv[1]); give([images], account);"
            "go_on_as(account, sys.argv[2:], shown=[Path.cwd(), images], home=Path('/tmp'))"
        )
        argv = [sys.executable, "-c", start, str(IMAGES), *argv]
    done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    for weakened in (False, True):
        assert {row[1] for row in rows if row[0] is weakened} == set(wanted)
    assert [row for row in rows if not row[0] and (row[2] or not row[3])] == [], "held by a whole machine"
    assert [row for row in rows if row[0] and not row[2]] == [], "harmless without its defence"


@pytest.mark.vm
@pytest.mark.timeout(1500)
@pytest.mark.skipif(bool(missing), reason=f"VIRTUAL MACHINES ARE NOT TESTED: no {' and no '.join(missing)}")
def test_attacks_fail_and_each_succeeds_without_its_defence() -> None:
    expect_all_held(list(QUICK))


def test_there_are_as_many_attacks_as_promised() -> None:
    assert len(names()) == len(set(names())) >= 40
    assert set(QUICK) <= set(names())
