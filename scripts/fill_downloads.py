#!/usr/bin/env python
"""Fill the folder of files that OSWorld's tasks download, for hosts without the internet.

    .venv/bin/python -m scripts.fill_downloads CHECKOUT SOURCE... [--into var/osworld-downloads]
    .venv/bin/python -m scripts.fill_downloads CHECKOUT            says what is missing, by address

CHECKOUT is an OSWorld checkout (or an index, as `import_tasks` takes it). A SOURCE is a folder, a .zip or a
.tar: a copy of the data set that the addresses point into, a cache of DesktopEnv, or any files beside a
`urls.json` of {address: path in the source}. A file belongs to an address when the source's index says so,
when the end of its path is that of the address (two parts or more), or when it lies in a folder named like
the task under the task's or DesktopEnv's name of it. Ends with 1 while anything is missing.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

from training.tasks.osworld_checkout import checkout_files
from workers.environments.osworld.child.download_cache import KeptFiles, Wanted, wanted_files

INDEX = "urls.json"
DEFAULT = Path("var/osworld-downloads")

Open = Callable[[str], BinaryIO]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("source", type=Path, nargs="*")
    parser.add_argument("--into", type=Path, default=DEFAULT)
    given = parser.parse_args()
    wanted = files_of_checkout(given.checkout)
    kept = KeptFiles(given.into)
    for source in given.source:
        print(f"{source}: {fill(kept, wanted, source)} files")
    missing = sorted({file.url for _, file in wanted if not kept.has(file.url)})
    print(*missing, sep="\n")
    print(f"{len({file.url for _, file in wanted}) - len(missing)} addresses filled, {len(missing)} missing")
    return bool(missing)


def files_of_checkout(checkout: Path) -> list[tuple[str, Wanted]]:
    """(DOMAIN.ID of the task, file that it fetches)"""
    found = checkout_files(checkout)
    if not found:
        sys.exit(f"{checkout}: no OSWorld checkout (it has evaluation_examples/examples)")
    return [
        (f"{item.domain}.{item.file.stem}", file)
        for item in found
        if item.file.is_file()
        for file in wanted_files(json.loads(item.file.read_text()))
    ]


def fill(kept: KeptFiles, wanted: list[tuple[str, Wanted]], source: Path) -> int:
    """Keep everything of the source that an address has; how many files that were."""
    num_kept = 0
    with opened(source) as (names, open_file), tempfile.TemporaryDirectory() as folder:
        by_end = ends_of(names)
        index = json.load(open_file(INDEX)) if INDEX in names else {}
        for task, file in wanted:
            name = index.get(file.url) or place_of(task, file, by_end)
            if name is None or kept.has(file.url):
                continue
            copy = Path(folder) / "file"
            with open_file(name) as stream, copy.open("wb") as out:
                shutil.copyfileobj(stream, out)
            kept.put(file.url, copy)
            num_kept += 1
    return num_kept


@contextmanager
def opened(source: Path) -> Iterator[tuple[list[str], Open]]:
    """(paths of its files, what opens one of them)"""
    if source.is_dir():
        names = [file.relative_to(source).as_posix() for file in source.rglob("*") if file.is_file()]
        yield names, lambda name: (source / name).open("rb")
    elif zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as archive:
            yield [item.filename for item in archive.infolist() if not item.is_dir()], archive.open  # type: ignore[misc]
    else:
        with tarfile.open(source) as tar:
            yield [item.name for item in tar.getmembers() if item.isfile()], tar.extractfile  # type: ignore[misc]


def ends_of(names: list[str]) -> dict[tuple[str, ...], str]:
    """Last parts of a path, two or more -> the path; ends that several paths have are left out."""
    found: dict[tuple[str, ...], str] = {}
    doubtful = set()
    for name in names:
        parts = PurePosixPath(name).parts
        for start in range(len(parts) - 1):
            if found.setdefault(parts[start:], name) != name:
                doubtful.add(parts[start:])
    return {end: name for end, name in found.items() if end not in doubtful}


def place_of(task: str, file: Wanted, by_end: dict[tuple[str, ...], str]) -> str | None:
    """The path that has what the address has: the longest end that fits, else the task's folder."""
    parts = PurePosixPath(unquote(urlsplit(file.url).path)).parts[1:]
    ends = [parts[start:] for start in range(len(parts) - 1)]
    folders = (task, task.partition(".")[2])
    ends += [(folder, name) for folder in folders for name in (file.name, file.given_name)]
    return next((by_end[end] for end in ends if end in by_end), None)


if __name__ == "__main__":
    raise SystemExit(main())
