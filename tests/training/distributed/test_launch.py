"""Ranks of one host: they meet without a listener on the network, and end together."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from testing import watch_installation

REPOSITORY = Path(__file__).resolve().parents[3]
LAUNCH = [sys.executable, "-m", "training.distributed.launch", "--ranks", "2", "-m", "rank_program"]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
MEET = """
import os, signal, sys, time
from pathlib import Path
folder = Path(sys.argv[1])
rank = os.environ["RANK"]
"""
JOIN = """
import torch
import torch.distributed as dist
from training.distributed.world import start_world
world = start_world() if sys.argv[2] == "ours" else (dist.init_process_group("gloo"), None)[1]
total = torch.ones(1)
dist.all_reduce(total)
(folder / rank).write_text(str(int(total)))
time.sleep(600)
"""

Start = Callable[..., subprocess.Popen]
wait_for = partial(watch_installation.wait_for, patience_s=120, poll_s=0.05)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a launcher of two ranks that run this program in `tmp_path`."""
    started = []

    def begin(program: str, *arguments: str, launcher: list[str] = LAUNCH) -> subprocess.Popen:
        (tmp_path / "rank_program.py").write_text(MEET + program)
        environment = os.environ | {"PYTHONPATH": f"{tmp_path}:{REPOSITORY}"}
        command = [*launcher, str(tmp_path), *arguments]
        started.append(
            subprocess.Popen(command, env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        )
        return started[0]

    yield begin
    for process in started:
        for left in [*psutil.Process(process.pid).children(recursive=True)] if process.poll() is None else []:
            with contextlib.suppress(psutil.NoSuchProcess):
                left.kill()
        process.kill()
        process.wait(60)


def both(folder: Path) -> bool:
    return all((folder / rank).exists() and (folder / rank).read_text() for rank in "01")


def listeners(process: subprocess.Popen) -> set[str]:
    """Addresses on which the launcher and its ranks take TCP connections."""
    top = psutil.Process(process.pid)
    return {
        connection.laddr.ip
        for member in [top, *top.children(recursive=True)]
        for connection in member.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }


def is_loopback(address: str) -> bool:
    return address.removeprefix("::ffff:").startswith("127.") or address == "::1"


def test_training_ranks_listen_on_loopback_only_where_torchrun_listens_everywhere(start, tmp_path):
    process = start(JOIN, "ours")
    wait_for("both", lambda: both(tmp_path))
    assert (tmp_path / "0").read_text() == "2"
    found = listeners(process)
    assert found
    assert all(is_loopback(address) for address in found)


def test_the_check_would_see_a_listener_of_torchrun(start, tmp_path):
    process = start(JOIN, "theirs", launcher=[*TORCHRUN, "-m", "rank_program"])
    wait_for("both", lambda: both(tmp_path))
    assert not all(is_loopback(address) for address in listeners(process))


def test_a_rank_that_crashes_ends_the_others_and_says_how(start, tmp_path):
    process = start(
        """
(folder / rank).write_text("here")
while not (folder / "1").exists(): time.sleep(0.01)
if rank == "1": os.kill(os.getpid(), signal.SIGKILL)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(600)
"""
    )
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGKILL
    assert "rank 1 of the trainer was ended by SIGKILL" in errors


def test_a_planned_end_of_one_rank_leaves_the_others_time(start, tmp_path):
    process = start(
        """
if rank == "0": time.sleep(1); (folder / "saved").write_text("checkpoint")
sys.exit(75)
"""
    )
    assert process.wait(120) == 75
    assert (tmp_path / "saved").exists()


def test_sigterm_reaches_every_rank(start, tmp_path):
    process = start(
        """
def leave(*_): (folder / f"left-{rank}").write_text("x"); sys.exit(75)
signal.signal(signal.SIGTERM, leave)
(folder / rank).write_text("ready")
time.sleep(600)
"""
    )
    wait_for("both", lambda: both(tmp_path))
    process.terminate()
    assert process.wait(120) == 75
    assert (tmp_path / "left-0").exists()
    assert (tmp_path / "left-1").exists()


def test_no_rank_outlives_a_killed_launcher(start, tmp_path):
    process = start("(folder / rank).write_text(str(os.getpid()))\ntime.sleep(600)\n")
    wait_for("both", lambda: both(tmp_path))
    pids = [int((tmp_path / rank).read_text()) for rank in "01"]
    process.kill()
    wait_for("their end", lambda: not any(psutil.pid_exists(pid) for pid in pids))


def test_the_weight_channel_meets_on_loopback():
    from training.weights.sync_process_group import find_store, open_store

    store = open_store(2)
    try:
        store.set("key", "value")
        assert find_store("127.0.0.1", store.port, 2).get("key") == b"value"
        own = [
            connection.laddr
            for connection in psutil.Process().net_connections("tcp")
            if connection.status == psutil.CONN_LISTEN and connection.laddr.port == store.port
        ]
        assert [address.ip for address in own] == ["127.0.0.1"]
    finally:
        del store
