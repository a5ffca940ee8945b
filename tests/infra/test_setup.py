"""`make setup`: what it says when it may not install, and that a second run has nothing to do."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from testing.private_installation import REPOSITORY

UNPRIVILEGED_USER = 65534
SYSTEM_PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin")


@pytest.fixture
def copy():
    """A copy of the set-up scripts that any user may read."""
    folder = Path(tempfile.mkdtemp(prefix="deskhand-setup-", dir="/tmp"))
    folder.chmod(0o755)
    shutil.copytree(REPOSITORY / "scripts", folder / "scripts")
    shutil.copytree(REPOSITORY / "requirements", folder / "requirements")
    programs = folder / "programs"
    programs.mkdir()
    programs.chmod(0o755)  # whatever the umask
    (programs / "dpkg-query").symlink_to(shutil.which("dpkg-query"))
    yield folder
    shutil.rmtree(folder)


def set_up(folder, *arguments):
    """Run the copied set-up as a user without rights, in a PATH without sudo."""
    command = [SYSTEM_PYTHON, "-B", str(folder / "scripts" / "setup.py"), *arguments]
    if os.geteuid() == 0:
        drop = ["setpriv", f"--reuid={UNPRIVILEGED_USER}", f"--regid={UNPRIVILEGED_USER}", "--clear-groups"]
        command = [shutil.which("setpriv"), *drop[1:], *command]
    env = {"PATH": str(folder / "programs")}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)


def test_a_missing_package_without_the_right_to_install_it_says_what_to_run(copy):
    with (copy / "requirements" / "system.txt").open("a") as packages:
        packages.write("deskhand-no-such-package\n")
    answer = set_up(copy)
    assert answer.returncode == 1
    assert "missing system packages: deskhand-no-such-package" in answer.stderr
    assert "sudo apt-get install -y --no-install-recommends deskhand-no-such-package" in answer.stderr


def test_a_second_set_up_has_nothing_to_say():
    command = [str(REPOSITORY / "scripts" / "setup"), "--no-system"]
    first = subprocess.run(command, capture_output=True, text=True, timeout=170, check=False)
    second = subprocess.run(command, capture_output=True, text=True, timeout=170, check=False)
    assert (first.returncode, second.returncode) == (0, 0)
    assert second.stdout + second.stderr == ""


def test_every_requirement_is_pinned_to_one_version():
    for name in ("core", "training", "dev"):
        lines = (REPOSITORY / "requirements" / f"{name}.txt").read_text().splitlines()
        pins = [line for line in lines if line and not line.startswith(("#", "-r"))]
        assert pins
        assert [pin for pin in pins if pin.count("==") != 1] == []
