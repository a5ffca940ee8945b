"""Short temporary folders (socket paths are short), clean desktops of the run's desk host, and a slot."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from testing.workers.slot_thread import slot_thread
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


@pytest.fixture
def env_thread(desk_client, settings, tmp_path) -> Iterator[None]:
    """Runs every queued trajectory as an env worker's slot does; only the broker in between is left out."""
    settings.DESKHOST_SOCKET = desk_client.socket_path
    settings.MEDIA_ROOT = str(tmp_path)
    with slot_thread(patience_s=60):
        yield
