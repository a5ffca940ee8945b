"""One real desk host for the whole test run, in a short temporary folder (unix socket paths are short)."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from workers.deskhost.client import DeskHostClient
from workers.desktop import DesktopEnv
from workers.providers.base import DesktopSpec, EnvError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def short_dir() -> Iterator[Path]:
    """A private folder with a path short enough for unix sockets."""
    folder = Path(tempfile.mkdtemp(prefix="dh-", dir="/tmp"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def start_host(folder: Path, *options: str) -> tuple[subprocess.Popen, DeskHostClient]:
    """A desk host process that answers."""
    socket_path = folder / "s"
    command = [
        sys.executable,
        "-m",
        "workers.deskhost",
        "--state-dir",
        str(folder),
        "--socket",
        str(socket_path),
    ]
    with open(folder / "host.log", "ab") as log:
        process = subprocess.Popen([*command, *options], cwd=ROOT, stdout=log, stderr=log)
    client = DeskHostClient(socket_path)
    deadline = time.monotonic() + 30
    while True:
        try:
            client.health()
            return process, client
        except EnvError:
            assert process.poll() is None, (folder / "host.log").read_text()
            assert time.monotonic() < deadline, "the desk host does not answer"
            time.sleep(0.05)


def stop_host(process: subprocess.Popen) -> int:
    """SIGTERM, as the supervisor does it."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    return process.wait(timeout=30)


@contextmanager
def running_host(folder: Path, *options: str) -> Iterator[DeskHostClient]:
    process, client = start_host(folder, *options)
    try:
        yield client
    finally:
        client.close()
        stop_host(process)


@pytest.fixture(scope="session")
def desk_client() -> Iterator[DeskHostClient]:
    """Client of a desk host that lives as long as the test run. It cleans in place also on a busy machine."""
    folder = Path(tempfile.mkdtemp(prefix="dh-", dir="/tmp"))
    with running_host(folder, "--max-desktops", "6", "--slow-reset-s", "3600") as client:
        yield client
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def desktop(desk_client: DeskHostClient) -> Iterator[DesktopEnv]:
    """A clean 512 x 384 desktop for one test."""
    lease = desk_client.acquire("x11", DesktopSpec(), holder=f"tests-{os.getpid()}", ttl_s=120)
    with DesktopEnv(desk_client, lease) as env:
        env.reset()
        yield env
