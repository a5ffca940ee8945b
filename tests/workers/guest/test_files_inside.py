"""The agent opens files as the user whose desktop it is, although it may do more."""

from __future__ import annotations

import os
import select
import signal
from pathlib import Path

import pytest

from workers.guest.files_inside import FilesInside
from workers.guest.window_routes import limited

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
