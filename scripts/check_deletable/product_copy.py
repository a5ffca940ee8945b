"""A copy of the tree, with a repository of its own, in which features are deleted."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from scripts.check_deletable.features import Feature
from scripts.check_deletable.remove_rows import names_any, without_rows
from scripts.mutants.tree_copy import TreeCopy
from testing.paths import REPOSITORY

TYPE_CACHE = ".mypy_cache"


class ProductCopy:
    """The tests ask git which files there are, so the copy has a commit to come back to."""

    def __init__(self, folder: Path) -> None:
        self.folder = TreeCopy(folder).folder
        if (cache := REPOSITORY / TYPE_CACHE).is_dir():
            shutil.copytree(cache, folder / TYPE_CACHE, symlinks=True)
        self._git("init", "--quiet")
        self._git("add", "--all")
        self._git("commit", "--quiet", "--message", "the tree")

    def delete(self, feature: Feature) -> int:
        """Remove its files and rows; how many lines of Python went."""
        modules, keys = feature.modules(), feature.keys()
        num_lines = 0
        for path in feature.paths(self.folder):
            python = [path] if path.is_file() else list(path.rglob("*.py"))
            num_lines += sum(len(file.read_text().splitlines()) for file in python if file.suffix == ".py")
            self._git("rm", "-rq", str(path.relative_to(self.folder)))
            if path.is_dir():
                shutil.rmtree(path)
        for name in feature.room.rows:
            file = self.folder / name
            before = file.read_text()
            file.write_text(without_rows(before, modules, keys))
            num_lines += len(before.splitlines()) - len(file.read_text().splitlines())
        return num_lines

    def files_that_name(self, feature: Feature) -> list[str]:
        """Python files of the whole tree that still import its modules."""
        modules = feature.modules()
        names = self._git("ls-files", "*.py").split()
        found = ((name, (self.folder / name).read_text()) for name in names if (self.folder / name).exists())
        words = {module.rpartition(".")[2] for module in modules}
        return [
            name for name, text in found if any(word in text for word in words) and names_any(text, modules)
        ]

    def existing(self, paths: Iterable[str]) -> list[str]:
        return [path for path in paths if (self.folder / path).exists()]

    def failure_of(self, command: tuple[str, ...]) -> str:
        """What a command of the virtual environment printed; "" when it succeeded."""
        program = self.folder / ".venv" / "bin" / command[0]
        done = subprocess.run(
            [str(program), *command[1:]],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": "", "DESKHAND_DATA_DIR": str(self.folder / "var")},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout + done.stderr if done.returncode else ""

    def restore(self) -> None:
        """The tree as it was, with what checks have cached."""
        self._git("reset", "--quiet", "--hard")
        self._git("clean", "-fdq")

    def _git(self, *arguments: str) -> str:
        person = ("-c", "user.name=deletable", "-c", "user.email=deletable@localhost")
        command = ["git", *person, *arguments]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=True).stdout
