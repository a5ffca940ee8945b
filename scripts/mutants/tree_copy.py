"""A copy of the tree in which files may be changed: the checkout itself never is."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from scripts.mutants.planted import REPOSITORY, Plant

INSTALLED = (".venv", ".venv-osworld", "node_modules")
_moments = count(1_000_000_000, 2)
"""A file that changes twice in a second would keep its compiled form of the same size."""


class TreeCopy:
    """A folder with all files of the checkout that git does not ignore."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(command, cwd=REPOSITORY, capture_output=True, check=True).stdout
        for name in filter(None, os.fsdecode(names).split("\0")):
            if (source := REPOSITORY / name).is_file() and name not in INSTALLED:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, folder / name)
        for name in INSTALLED:
            if (installed := REPOSITORY / name).exists():
                (folder / name).symlink_to(installed.resolve())

    @contextmanager
    def with_change(self, plant: Plant) -> Iterator[None]:
        """The change is there meanwhile. Raises BadList."""
        path, text = self.folder / plant.path, plant.mutated(self.folder)
        before = path.read_text()
        try:
            self._write(path, text)
            yield
        finally:
            self._write(path, before)

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text)
        moment = next(_moments)
        os.utime(path, (moment, moment))
