"""The agent opens files as the user whose desktop it is, although it may do more."""

from __future__ import annotations

import asyncio
import os
import select
import signal
from pathlib import Path

import pytest

from workers.desktops.qemu.boot_phases import display_wait_s
from workers.desktops.qemu.window_control import AgentWindows
from workers.guest.files_inside import FilesInside
from workers.guest.http_server import HttpError, Request
from workers.guest.window_routes import WindowRoutes, limited

NOBODY = 65534


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can open files as another user")
def test_files_are_read_and_made_with_the_users_rights_alone(tmp_path: Path):
    for folder in (tmp_path, *tmp_path.parents):
        if folder != Path("/") and folder.stat().st_uid == os.getuid():
            folder.chmod(folder.stat().st_mode | 0o011)
    secret, box = tmp_path / "secret", tmp_path / "box"
    secret.write_bytes(b"root's")
    secret.chmod(0o600)
    box.mkdir()
    os.chown(box, NOBODY, NOBODY)
    (box / "answer").symlink_to(secret)
    inside = FilesInside()
    assert inside.read(str(box / "answer")) == b"root's"
    inside.use_rights_of(NOBODY, NOBODY)
    with pytest.raises(PermissionError):
        inside.read(str(box / "answer"))
    with pytest.raises(PermissionError):
        inside.write(str(tmp_path / "new"), b"")
    inside.write(str(box / "deep" / "new"), b"mine")
    made = (box / "deep" / "new").stat()
    assert (made.st_uid, made.st_gid) == (NOBODY, NOBODY)
    assert secret.read_bytes() == b"root's", "the agent itself is as before"


def test_a_call_that_blocks_is_ended_at_its_limit():
    with pytest.raises(TimeoutError, match=r"no answer after 0\.05 s"), limited(0.05):
        select.select([], [], [])
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


class StillDisplay(WindowRoutes):
    """A display that answers after `answers_after_s`."""

    answers_after_s = 0.2

    def _cardinals(self, name: str) -> list[int]:
        select.select([], [], [], self.answers_after_s)
        return []


def test_an_emulated_display_is_waited_for_as_long_as_the_host_says():
    """First trajectories of emulated machines errored: the display had 8 s, whatever the boot had taken."""
    routes = StillDisplay(":0", limit_s=0.05)
    with pytest.raises(HttpError, match="no answer after"):
        asyncio.run(routes.list_windows(Request("GET", "/windows", {}, {}, b"")))
    patient = Request("GET", "/windows", {"wait_s": "30"}, {}, b"")
    assert asyncio.run(routes.list_windows(patient)).status == 200
    with pytest.raises(HttpError, match="wait_s"):
        asyncio.run(routes.list_windows(Request("GET", "/windows", {"wait_s": "long"}, {}, b"")))


@pytest.mark.parametrize(("accelerator", "asked"), [("tcg", "/windows?wait_s=120"), ("kvm", "/windows")])
def test_the_host_of_an_emulated_machine_says_so(accelerator: str, asked: str):
    calls = []

    class Agent:
        def call(self, method: str, path: str, timeout_s: float | None = None) -> tuple[int, bytes]:
            calls.append((path, timeout_s))
            return 200, b'{"windows": []}'

    wait_s = display_wait_s(accelerator)
    assert AgentWindows(Agent(), wait_s).all() == []
    ((path, timeout_s),) = calls
    assert path == asked
    assert timeout_s is None if accelerator == "kvm" else timeout_s > 120
