"""Child processes end as whole groups: on request, with their parent, and by the next start's sweep."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from testing.small_disk import small_disk
from workers.processes import rotating_log
from workers.processes.logged_process import LoggedProcess
from workers.processes.pid_records import PidRecords
from workers.processes.process_group import end_group, start_ticks
from workers.processes.unix_socket import MAX_PATH_BYTES, connect_unix, listen_unix, short_alias

WITH_GRANDCHILD = "sleep 100 & echo $!; exec sleep 100"


def eventually(is_true: Callable[[], bool], limit_s: float = 60.0) -> bool:
    deadline = time.monotonic() + limit_s
    while not is_true() and time.monotonic() < deadline:
        time.sleep(0.02)
    return is_true()


@pytest.fixture
def child(tmp_path: Path) -> LoggedProcess:
    return LoggedProcess(
        "a child",
        ["sh", "-c", WITH_GRANDCHILD],
        log_path=tmp_path / "logs" / "child.log",
        env=dict(os.environ),
        cwd=tmp_path,
        records=PidRecords(tmp_path / "pids"),
    )


def grandchild_of(child: LoggedProcess) -> int:
    assert eventually(lambda: child.tail().strip().isdigit())
    return int(child.tail())


def test_stopping_a_child_ends_its_group_and_its_record(child: LoggedProcess, tmp_path: Path) -> None:
    grandchild = grandchild_of(child)
    assert PidRecords(tmp_path / "pids").names() == [f"a-child-{child.process.pid}"]
    child.stop(grace_s=5.0)
    assert child.exit_code() == -signal.SIGTERM
    assert eventually(lambda: start_ticks(grandchild) is None)
    assert PidRecords(tmp_path / "pids").names() == []
    child.stop()  # idempotent


def test_a_log_is_rotated_and_its_last_lines_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rotating_log, "LARGEST_FILE_BYTES", 1000)
    child = LoggedProcess(
        "talker",
        ["seq", "1", "2000"],
        log_path=tmp_path / "talker.log",
        env=dict(os.environ),
        cwd=tmp_path,
        records=PidRecords(tmp_path / "pids"),
    )
    assert eventually(lambda: child.exit_code() == 0)
    assert child.tail(300).split() == [str(number) for number in range(1701, 2001)]
    sizes = {path.name: path.stat().st_size for path in tmp_path.glob("talker.log*")}
    assert sorted(sizes) == ["talker.log", "talker.log.1", "talker.log.2", "talker.log.3"]
    assert max(sizes.values()) <= 1000
    child.stop()


def test_a_full_disk_costs_a_child_its_log_and_not_its_life(tmp_path: Path) -> None:
    with small_disk(tmp_path / "logs", 1) as disk:
        child = LoggedProcess(
            "talker",
            ["sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x | fold -w 1000 && touch ../survived"],
            log_path=disk / "talker.log",
            env=dict(os.environ),
            cwd=disk,
            records=PidRecords(tmp_path / "pids"),
        )
        assert eventually(lambda: child.exit_code() == 0)
        assert (tmp_path / "survived").exists()
        child.stop()


def test_a_child_that_ignores_sigterm_is_killed_after_its_grace(tmp_path: Path) -> None:
    stubborn = subprocess.Popen(
        ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert stubborn.stdout is not None
    assert stubborn.stdout.readline() == b"ready\n"
    started = time.monotonic()
    end_group(stubborn.pid, grace_s=0.5, leader=stubborn)
    assert stubborn.returncode == -signal.SIGKILL
    assert time.monotonic() - started >= 0.5


def test_the_sweep_ends_a_group_whose_leader_has_ended(child: LoggedProcess, tmp_path: Path) -> None:
    grandchild = grandchild_of(child)
    os.kill(child.process.pid, signal.SIGKILL)
    child.process.wait()
    assert start_ticks(grandchild) is not None, "the group outlives its leader"
    assert PidRecords(tmp_path / "pids").sweep(grace_s=1.0) == 1
    assert eventually(lambda: start_ticks(grandchild) is None)
    assert PidRecords(tmp_path / "pids").sweep() == 0


def test_a_child_dies_with_its_parent(tmp_path: Path) -> None:
    program = (
        "import os, sys, time\n"
        "from pathlib import Path\n"
        "from workers.processes.logged_process import LoggedProcess\n"
        "from workers.processes.pid_records import PidRecords\n"
        "folder = Path(sys.argv[1])\n"
        "child = LoggedProcess('c', ['sleep', '100'], log_path=folder / 'log', env=dict(os.environ),\n"
        "                      cwd=folder, records=PidRecords(folder / 'pids'))\n"
        "print(child.process.pid, flush=True)\n"
        "time.sleep(100)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert eventually(lambda: psutil.Process(pid).name() == "sleep"), "setpriv became the command"
    parent.kill()
    parent.wait()
    assert eventually(lambda: start_ticks(pid) is None)


def test_a_socket_with_a_long_path_has_a_short_alias(tmp_path: Path) -> None:
    path = tmp_path / ("x" * MAX_PATH_BYTES) / "s"
    alias = short_alias(str(path))
    assert len(alias) <= MAX_PATH_BYTES
    with listen_unix(path), socket.socket(socket.AF_UNIX) as plain, connect_unix(str(path)):
        plain.connect(alias)
        assert oct(path.stat().st_mode)[-3:] == "600"
    assert short_alias("/tmp/s") == "/tmp/s"
