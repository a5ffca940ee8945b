"""Short temporary folders (unix socket paths are short), and clean desktops of the run's desk host."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from workers.desktops.contract import DesktopSpec
from workers.desktops.host.client import DeskHostClient
from workers.desktops.leased_desktop import DesktopEnv

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def short_dir() -> Iterator[Path]:
    """A private folder with a path short enough for unix sockets."""
    folder = Path(tempfile.mkdtemp(prefix="dh-", dir="/tmp"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def desktop(desk_client: DeskHostClient) -> Iterator[DesktopEnv]:
    """A clean 512 x 384 desktop for one test."""
    lease = desk_client.acquire("x11", DesktopSpec(), holder=f"tests-{os.getpid()}", ttl_s=120)
    with DesktopEnv(desk_client, lease) as env:
        env.reset()
        yield env
