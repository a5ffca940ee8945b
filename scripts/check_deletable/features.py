"""The optional features: each folder beside the registry of a room of features is one.

A new tracker, dialect or provider is thereby checked without a line here; only a new room needs one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from testing.paths import REPOSITORY


@dataclass(frozen=True, slots=True)
class Room:
    """A folder of features, one folder each, and the files that name them."""

    folder: str
    tests: tuple[str, ...]
    """What must pass without one of its features."""
    keeps: tuple[str, ...] = ()
    """Folders beside the registry that are no optional feature."""
    marker: str = "*/__init__.py"
    """What each feature's folder holds."""
    has_registry: bool = True
    """False: a feature is found by its folder alone."""
    tables: tuple[str, ...] = ()
    """Other files than `registry.py` with rows of a feature."""
    also: tuple[str, ...] = ()
    """Other files of a feature, with {name} or, with hyphens, {key}: its config, preset and templates."""
    regenerates: tuple[str, ...] = ()
    """Modules that write generated files anew."""
    is_chosen_by_name: bool = False
    """Whether tables name its features, as a config does: with hyphens."""

    @property
    def rows(self) -> tuple[str, ...]:
        return (*((f"{self.folder}/registry.py",) if self.has_registry else ()), *self.tables)


@dataclass(frozen=True, slots=True)
class Feature:
    """What can be deleted."""

    room: Room
    name: str

    @property
    def title(self) -> str:
        return f"{self.room.folder}/{self.name}"

    def paths(self, root: Path = REPOSITORY) -> list[Path]:
        """Its code, its tests, and what else it has."""
        page = f"docs/features/{Path(self.room.folder).name}/{self.name}.md"
        key = self.name.replace("_", "-")
        also = (text.format(name=self.name, key=key) for text in self.room.also)
        own = (self.title, f"tests/{self.title}", page, *also)
        return [root / path for path in own if (root / path).exists()]

    def keys(self) -> list[str]:
        """What other tables call it: names of its pages, and its own where a config chooses it."""
        own = [self.name.replace("_", "-")] if self.room.is_chosen_by_name else []
        return [*self.routes(), *own]

    def routes(self) -> list[str]:
        """Names of its pages, by which other tables know them."""
        pages = REPOSITORY / self.title / "urls.py"
        return ROUTE_NAME.findall(pages.read_text()) if pages.exists() else []

    def modules(self) -> list[str]:
        """Dotted names of its product code and tests."""
        python = [path for path in self.paths() if path.is_dir() or path.suffix == ".py"]
        return [".".join(path.relative_to(REPOSITORY).with_suffix("").parts) for path in python]


ROUTE_NAME = re.compile(r"\bname=\"([a-z-]+)\"")
ROUTE_TABLES = ("tests/webapp/api/test_parity.py", "tests/webapp/test_access_matrix.py")
"""They have a row for each page of the product."""
ROOMS: tuple[Room, ...] = (
    Room("webapp/trackers", tests=("tests/webapp/trackers",), keeps=("management", "migrations")),
    Room(
        "workers/env_server/dialects",
        tests=("tests/workers/env_server",),
        keeps=("openenv", "sandboxes"),  # of our own client, and of our own provider `gateway`
    ),
    Room(
        "workers/environments",
        tests=("tests/workers/environments/test_gateway.py", "tests/training/contracts"),
        keeps=(
            "gateway",
            "osworld",
        ),  # env workers and runtimes of tasks ask for them
        tables=("training/contracts/config/desktops.py", "training/contracts/config/__init__.py"),
        also=("training/contracts/config/providers/{name}.py",),
        regenerates=("tests.training.contracts.test_config_schema", "scripts.write_settings_page"),
    ),
    Room(
        "training/actions/dialects",
        tests=tuple(f"tests/training/{room}" for room in ("actions", "contracts", "planning", "render")),
        keeps=("json", "keyboard", "pyautogui", "tool_call"),  # recipes, imports and prompts ask for them
        tables=("training/contracts/config/policy.py",),
        also=("training/planning/presets/osworld-{key}.yaml",),
        regenerates=(
            "tests.training.contracts.test_config_schema",
            "scripts.write_settings_page",
            "tests.training.actions.test_dialects_page",
        ),
        is_chosen_by_name=True,
    ),
    Room(
        "webapp/notifications/channels",
        tests=("tests/webapp/notifications",),
        keeps=("browser", "webhook"),  # the page of rules offers the first; tests of sending use both
        also=("templates/notifications/channels/{name}",),
    ),
    Room(
        "webapp/scanners/kinds",
        tests=("tests/webapp/scanners",),
        keeps=("loop", "text"),  # tests of scans use both
        tables=("webapp/scanners/shipped.py",),
        also=("templates/scanners/kinds/{name}.html",),
    ),
    Room(
        "webapp/replay/formats",
        tests=("tests/webapp/replay", "tests/webapp/api"),
        keeps=("lines",),  # the others are made from it
    ),
    Room(
        "webapp/replay/demonstration_sources",
        tests=("tests/webapp/replay/test_demonstration_sources.py",),
        marker="*/mapping.yaml",
        has_registry=False,
    ),
    Room(
        "webapp/accounts/identity_providers",
        tests=("tests/webapp/accounts",),
        tables=ROUTE_TABLES,
        also=("tests/browser/identity_providers/{name}",),
    ),
)


def features() -> Iterator[Feature]:
    """All of them, room by room."""
    for room in ROOMS:
        folders = sorted(path.parent.name for path in (REPOSITORY / room.folder).glob(room.marker))
        yield from (Feature(room, name) for name in folders if name not in room.keeps)
