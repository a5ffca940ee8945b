"""Files that tasks fetch from the internet, kept between episodes and processes by what is in them.

    content/SHA256      a file, under the hash of its content
    urls/UUID5          which one an address has: the hash, as text

The address is named as DesktopEnv names it, by UUID version 5. Each episode gets an empty cache of
DesktopEnv's, in which only the files of its own addresses lie: what an evaluator fetched from the desktop has
the same names in every episode. scripts/fill_downloads.py fills the folder beforehand, for hosts without a
network. Standard library only: it runs in OSWorld's environment.
"""

import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class DamagedFile(Exception):
    """Raised when a kept file no longer has its hash; the message names it and what to do."""


@dataclass(frozen=True)
class Wanted:
    """One file that a task fetches."""

    url: str
    name: str
    """Under which DesktopEnv's cache has it."""
    given_name: str
    """What the task calls it."""


def wanted_files(task: Any) -> Iterator[Wanted]:
    """All that set-up steps `download` and getters `cloud_file` of a task fetch, wherever they stand."""
    if isinstance(task, list):
        for item in task:
            yield from wanted_files(item)
    elif isinstance(task, dict):
        if task.get("type") == "download":
            for file in task.get("parameters", {}).get("files", ()):
                name = os.path.basename(file["path"])
                yield Wanted(file["url"], f"{url_key(file['url'])}_{name}", name)
        elif task.get("type") == "cloud_file":
            for url, name in zip(_several(task.get("path")), _several(task.get("dest")), strict=False):
                yield Wanted(url, name, name)
        for value in task.values():
            yield from wanted_files(value)


def url_key(url: str) -> str:
    """The name of an address."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, url))


class KeptFiles:
    """The folder that all processes of a machine share. A file appears in it whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self._content, self._urls = folder / "content", folder / "urls"

    def has(self, url: str) -> bool:
        return (self._urls / url_key(url)).is_file()

    def put(self, url: str, file: Path) -> str:
        """Keep a copy as what the address has; answers its hash. The same content lies there once."""
        with file.open("rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        if not (self._content / sha256).is_file():
            _appear(self._content / sha256, lambda place: shutil.copyfile(file, place))
        _appear(self._urls / url_key(url), lambda place: place.write_text(sha256))
        return sha256

    def copy(self, url: str, place: Path) -> None:
        """What the address has, as a file at `place`. Raises DamagedFile."""
        sha256 = (self._urls / url_key(url)).read_text().strip()
        kept = self._content / sha256
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(kept, place)
            with place.open("rb") as stream:
                found = hashlib.file_digest(stream, "sha256").hexdigest()
        except FileNotFoundError:
            found = "gone"
        if found != sha256:
            place.unlink(missing_ok=True)
            raise DamagedFile(f"{kept} is damaged ({found}): delete it, and fill the folder again for {url}")


class Downloads:
    """`cache` is DesktopEnv's, private; `kept` is shared by all processes of the machine."""

    def __init__(self, cache: Path, kept: Path) -> None:
        self._cache, self._kept = cache, KeptFiles(kept)

    def lay_out(self, task: dict[str, Any]) -> None:
        """An empty cache, but for the kept files of the task's addresses. Raises DamagedFile."""
        shutil.rmtree(self._cache, ignore_errors=True)
        for file in wanted_files(task):
            if self._kept.has(file.url):
                self._kept.copy(file.url, self._cache / str(task["id"]) / file.name)

    def keep(self, task: dict[str, Any]) -> None:
        """What this episode downloaded joins the shared folder."""
        for file in wanted_files(task):
            fetched = self._cache / str(task["id"]) / file.name
            if fetched.is_file() and not self._kept.has(file.url):
                self._kept.put(file.url, fetched)


def _several(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value or ())


def _appear(place: Path, write: Any) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    partial = place.with_name(f".{os.getpid()}-{place.name}")
    write(partial)
    partial.replace(place)
