"""Where desktops take their programs from: this machine's own system, or a folder with another one.

DESKHAND_DESKTOP_ROOT names the folder of a Debian system (docs/running.md says how to make one). Desktops
then look and behave the same on every machine, and the machine itself needs bubblewrap only.
"""

import os
import shutil
from pathlib import Path

from workers.desktops.contract import EnvError

VARIABLE = "DESKHAND_DESKTOP_ROOT"
OWN = Path("/")
PROGRAM_FOLDERS = ("usr/local/bin", "usr/bin", "bin", "usr/games")


def desktop_root() -> Path:
    """The folder; "/" when none is set. Raises EnvError when it holds no system."""
    root = Path(os.environ.get(VARIABLE) or OWN)
    if not (root / "usr" / "bin").is_dir():
        raise EnvError(f"{VARIABLE}={root}: no system there (usr/bin is missing)", permanent=True)
    return root.resolve()


def has_program(root: Path, name: str) -> bool:
    """Whether the system in `root` has a program; `name` may be a path."""
    if root == OWN:
        return shutil.which(name) is not None
    if name.startswith("/"):
        return os.path.lexists(root / name.lstrip("/"))
    # Links there may be absolute, so they lead nowhere as seen from here: whether they exist must do.
    return any(os.path.lexists(root / folder / name) for folder in PROGRAM_FOLDERS)
