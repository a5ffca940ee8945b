"""A Python environment with exactly the packages that an image's requirement files pin, and what lacks in it.

Packages are links to those of the environment that runs the tests, so one is made in a moment.
"""

from __future__ import annotations

import ast
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from testing.image_files import Stage
from testing.paths import REPOSITORY

PIN = re.compile(r"([A-Za-z0-9._-]+)==")
OURS = frozenset({"webapp", "workers", "training"})
HERE = Path(sysconfig.get_path("purelib"))


def requirements_of(stage: Stage) -> set[str]:
    """Packages that its pip lines install, by their plain names."""
    return {name for file in stage.requirements for name in _pinned(REPOSITORY / file)}


def _pinned(file: Path) -> Iterator[str]:
    for line in file.read_text().splitlines():
        if line.startswith("-r "):
            yield from _pinned(file.parent / line[3:].strip())
        elif pin := PIN.match(line):
            yield re.sub(r"[-_.]+", "-", pin[1]).lower()


def make_environment(packages: Iterable[str], folder: Path) -> Path:
    """Its Python: finds the standard library and `packages`, less those that are not here either."""
    site = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    site.mkdir(parents=True)
    for name in packages:
        for entry in _entries(name):
            (site / entry).parent.mkdir(exist_ok=True)
            if not (site / entry).exists():
                (site / entry).symlink_to(HERE / entry)
    python = folder / "bin" / "python"
    python.parent.mkdir()
    base = Path(sys._base_executable)  # type: ignore[attr-defined]
    python.symlink_to(base)
    (folder / "pyvenv.cfg").write_text(f"home = {base.parent}\ninclude-system-site-packages = false\n")
    return python


def _entries(package: str) -> set[str]:
    """What it has in site-packages: files and folders there, or in a folder that several packages share."""
    try:
        record = distribution(package).read_text("RECORD") or ""
    except PackageNotFoundError:
        return set()
    files = [line.partition(",")[0] for line in record.splitlines()]
    parts = [file.split("/") for file in files if not file.startswith(("..", "/", "__pycache__"))]
    closed = {one[0] for one in parts if len(one) == 2}
    return {one[0] if one[0] in closed else "/".join(one[:2]) for one in parts}


def missing_imports(app: Path, python: Path, begin: Iterable[str], apart: tuple[str, ...] = ()) -> set[str]:
    """`NAME, imported by MODULE`: what no file in `app` and no package gives.

    From the modules `begin` on, also imports within functions; without those that handle an ImportError, and
    without modules of the rooms `apart`.
    """
    site = next(python.parent.parent.glob("lib/*/site-packages"))
    seen, waiting, missing = set[Path](), [(name, "the command") for name in begin], set[str]()
    while waiting:
        name, by = waiting.pop()
        if f"{name}.".startswith(tuple(f"{room}." for room in apart)):
            continue
        if name.partition(".")[0] not in OURS:
            if not _is_given(name, site):
                missing.add(f"{name}, imported by {by}")
        elif (file := _file(app, name)) is None:
            missing.add(f"{name}, imported by {by}")
        elif file not in seen:
            seen.add(file)
            waiting += [(one, name) for one in _imports(app, file, name)]
    return missing


def _is_given(name: str, site: Path) -> bool:
    first, *rest = name.split(".")
    if first in sys.stdlib_module_names:
        return True
    folder = site / first
    if rest and folder.is_dir() and not (folder / "__init__.py").exists():
        return any(folder.glob(f"{rest[0]}*"))
    return folder.is_dir() or any(site.glob(f"{first}.*"))


def _file(app: Path, name: str) -> Path | None:
    place = app.joinpath(*name.split("."))
    found = (place / "__init__.py", place.with_suffix(".py"), place)
    return next((one for one in found if one.exists()), None)


def _imports(app: Path, file: Path, module: str) -> Iterator[str]:
    if file.is_dir():
        return
    for name, below in _import_lines(file.read_text()):
        yield name
        if name.partition(".")[0] in OURS:
            yield from (f"{name}.{one}" for one in below if _file(app, f"{name}.{one}"))


@cache
def _import_lines(text: str) -> list[tuple[str, list[str]]]:
    """(module, names taken from it); stages share most files."""
    found = []
    for node in _nodes(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [(one.name, []) for one in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.append((node.module, [one.name for one in node.names]))
    return found


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All of the tree, but for what a `try` with an ImportError handles or a type checker alone reads."""
    for node in ast.iter_child_nodes(tree):
        handled = isinstance(node, ast.Try) and any("ImportError" in ast.dump(one) for one in node.handlers)
        if handled or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)):
            continue
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):  # expressions hold no imports
            yield node
            yield from _nodes(node)
