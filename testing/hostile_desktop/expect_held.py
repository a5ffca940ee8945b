"""Attacks as desktops really run: by an ordinary user, also where tests are root's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from testing.desk_host_process import ROOT

AS_ORDINARY_USER = """
import sys
from pathlib import Path
from workers.processes.own_account import give, go_on_as, own_account
account, own = own_account(), [Path(folder) for folder in sys.argv[1].split(":") if folder]
give(own, account)
go_on_as(account, sys.argv[2:], shown=[Path.cwd(), *own], home=Path("/tmp"))
"""


def expect_all_held(module: str, *arguments: str, wanted: Iterable[str], own: Iterable[Path] = ()) -> None:
    """Each of these attacks fails, leaves the next lease clean, and succeeds without its defence.

    `module`: a program of this package, told `arguments` and the names; it prints a JSON list per attack:
    weakened, name, succeeded, next lease clean, report. `own`: folders that its user is given.
    """
    environment = {name: value for name, value in os.environ.items() if name != "DESKHAND_DATA_DIR"}
    argv = [sys.executable, "-m", f"testing.hostile_desktop.{module}", *arguments, *wanted]
    if os.geteuid() == 0:
        argv = [sys.executable, "-c", AS_ORDINARY_USER, ":".join(map(str, own)), *argv]
    done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    for weakened in (False, True):
        assert {row[1] for row in rows if row[0] is weakened} == set(wanted)
    assert [row for row in rows if not row[0] and (row[2] or not row[3])] == [], "held by a whole desktop"
    harmless = [row for row in rows if row[0] and not row[2]]
    assert harmless == [], f"harmless without its defence: {harmless}"
