"""Front-end files out of installed packages, by an allow-list: nothing is vendored, nothing comes from a CDN.

A whole package folder cannot be offered: they hold tens of megabytes that no page uses.
"""

from __future__ import annotations  # `list` below is a method of the class that mentions the type

import fnmatch
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage


@dataclass(frozen=True, slots=True)
class Package:
    """Some files of one npm package."""

    prefix: str
    """Public folder below STATIC_URL."""
    name: str
    """Package name in package.json."""
    root: str
    """Folder inside the package that the patterns are relative to."""
    patterns: tuple[str, ...]


PACKAGES = (
    Package("vendor/novnc", "@novnc/novnc", "", ("core/*.js", "vendor/pako/lib/*.js")),
    Package("vendor/idiomorph", "idiomorph", "dist", ("idiomorph.esm.js",)),
    Package("vendor/plotly", "plotly.js-cartesian-dist-min", "", ("plotly-cartesian.min.js",)),
)


class AssetsMissing(Exception):
    """Raised when an npm package is not installed; the message says what to run."""


class PackageStorage(FileSystemStorage):
    """A package's folder; collectstatic reads the public folder from `prefix`."""

    def __init__(self, prefix: str, location: Path) -> None:
        super().__init__(location=location)
        self.prefix = prefix


class PackageFinder(BaseFinder):
    """Finds the files of PACKAGES for collectstatic and `{% static %}`."""

    def __init__(self, app_names: Iterable[str] | None = None, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)

    @cached_property
    def storages(self) -> list[tuple[Package, PackageStorage]]:
        found = []
        for package in PACKAGES:
            location = Path(settings.NODE_MODULES) / package.name / package.root
            found.append((package, PackageStorage(package.prefix, location)))
        return found

    def find(  # type: ignore[override]  # the stubs have overloads, Django itself has this
        self, path: str, find_all: bool = False, **kwargs: object
    ) -> str | list[str]:
        for package, storage in self.storages:
            relative = path.removeprefix(package.prefix + "/")
            if relative == path or not allowed(package, relative):
                continue
            if storage.exists(relative):
                found = storage.path(relative)
                return [found] if find_all else found
        return []

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[tuple[str, FileSystemStorage]]:
        for package, storage in self.storages:
            root = Path(storage.location)
            if not root.is_dir():
                raise AssetsMissing(
                    f"{package.name} is not installed in {settings.NODE_MODULES}: run `make setup`"
                )
            for file in sorted(root.rglob("*")):
                relative = file.relative_to(root).as_posix()
                if file.is_file() and allowed(package, relative):
                    yield relative, storage


def allowed(package: Package, relative: str) -> bool:
    """True when the allow-list names this file of the package."""
    return any(fnmatch.fnmatchcase(relative, pattern) for pattern in package.patterns)


def installed_version(name: str) -> str:
    """The installed version of an npm package. Raises AssetsMissing when it is not there."""
    manifest = Path(settings.NODE_MODULES) / name / "package.json"
    if not manifest.is_file():
        raise AssetsMissing(missing_message(name))
    return json.loads(manifest.read_text())["version"]


def missing_message(name: str) -> str:
    return f"{name} is not installed in {settings.NODE_MODULES}: run `make setup`"
