"""Whichever user starts the desk host, its desktops run with the rights of an ordinary user."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from testing.desk_host_process import ROOT, HostFailed, running_host, start_host
from workers.desktops.contract import DesktopSpec
from workers.desktops.host.client import DeskHostClient
from workers.desktops.leased_desktop import DesktopEnv
from workers.processes.own_account import own_account

pytestmark = pytest.mark.desktop
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has anything to give up")


def used_desktop(client: DeskHostClient) -> str:
    """Output of a command in a new desktop that was reset once."""
    lease = client.acquire("x11", DesktopSpec(), holder="tests", ttl_s=60)
    with DesktopEnv(client, lease) as desktop:
        desktop.reset()
        done = desktop.agent.execute("echo x > /proc/sys/kernel/core_pattern || echo refused", shell=True)
        return done.output


@pytest.fixture(autouse=True)
def _umask() -> Iterator[None]:
    old = os.umask(0o077)
    yield
    os.umask(old)


@needs_root
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_root_becomes_another_user_below_folders_that_are_closed_to_it(short_dir: Path, umask: int) -> None:
    os.umask(umask)
    closed = short_dir / "closed"
    closed.mkdir(mode=0o700)
    (closed / "secret").write_text("only root may read this")
    with running_host(closed / "state") as client:
        process = psutil.Process(client.health().pid)
        uid = own_account().uid
        assert uid != 0
        assert set(process.uids()) == {uid}
        assert not process.children() or all(set(child.uids()) == {uid} for child in process.children())
        assert used_desktop(client) == "refused\n"
        seen = os.listdir(f"/proc/{process.pid}/root{closed}")
        assert seen == ["state"], "of the closed folder it sees what it needs"
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    assert (closed / "secret").stat().st_uid == 0


@needs_root
def test_its_user_learns_no_secrets_of_the_installation(short_dir: Path, monkeypatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://deskhand:hidden@localhost/deskhand")
    monkeypatch.setenv("DESKHAND_SECRET_KEY", "hidden")
    with running_host(short_dir) as client:
        environment = Path(f"/proc/{client.health().pid}/environ").read_bytes()
    assert b"hidden" not in environment
    assert b"PATH=" in environment


@needs_root
def test_its_user_reads_the_login_of_an_image_and_no_other_secret(short_dir: Path, monkeypatch) -> None:
    monkeypatch.setenv("DESKHAND_DATA_DIR", str(short_dir))
    image, secrets = short_dir / "images" / "office", short_dir / "secrets"
    image.mkdir(parents=True)
    image.joinpath("image.json").write_text('{"windows": {"login": {"secret": "office-login"}}}')
    secrets.mkdir(mode=0o700)
    for name in ("office-login", "vendor-token"):
        (secrets / name).touch(0o600)
        (secrets / name).write_text(name)
    with running_host(short_dir / "state") as client:
        account = own_account()
        user = ["setpriv", f"--reuid={account.uid}", f"--regid={account.gid}", "--clear-groups"]
        view = ["nsenter", f"--mount=/proc/{client.health().pid}/ns/mnt"]
        read = [*view, *user, "cat", str(secrets / "office-login"), str(secrets / "vendor-token")]
        seen = subprocess.run(read, capture_output=True, text=True, check=False)
    assert seen.stdout == "office-login"
    assert "Permission denied" in seen.stderr


@needs_root
def test_a_user_that_is_root_is_refused_and_the_flag_is_named(short_dir: Path, monkeypatch) -> None:
    monkeypatch.setenv("DESKHAND_DESKTOP_USER", "root")
    with pytest.raises(HostFailed, match="DESKHAND_DESKTOP_USER=root is root") as refused:
        start_host(short_dir)
    assert "--unsafe-desktops starts it all the same" in str(refused.value)


@needs_root
def test_only_the_flag_keeps_root_and_health_says_so(short_dir: Path) -> None:
    with running_host(short_dir, "--unsafe-desktops") as client:
        assert set(psutil.Process(client.health().pid).uids()) == {0}
        (x11,) = [health for health in client.health().providers if health.provider == "x11"]
    assert any("root's user number" in reason for reason in x11.reasons)


@pytest.fixture
def folder_of_another(short_dir: Path) -> Path:
    shutil.chown(short_dir, own_account().uid)
    return short_dir


@needs_root
def test_an_ordinary_user_starts_it_as_ever(folder_of_another: Path, monkeypatch) -> None:
    """The folder is opened for this test's interpreter alone, as a checkout of that user would be."""
    monkeypatch.delenv("DESKHAND_DATA_DIR", raising=False)  # the data folder of these tests is root's
    account = own_account()
    script = (
        "import sys; sys.path.insert(0, '.'); from pathlib import Path\n"
        "from testing.desk_host_process import running_host\n"
        "from tests.workers.desktops.host.test_own_user import used_desktop\n"
        f"with running_host(Path({str(folder_of_another)!r})) as client: print(used_desktop(client))"
    )
    start = (
        "from pathlib import Path; from workers.processes.own_account import *;"
        f"go_on_as(own_account(), [{sys.executable!r}, '-c', {script!r}], shown=[Path({str(ROOT)!r})],"
        f" home=Path({str(folder_of_another)!r}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", start], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == "refused\n\n", done.stderr
    assert "goes on as user" not in (folder_of_another / "host.log").read_text(), account.name
