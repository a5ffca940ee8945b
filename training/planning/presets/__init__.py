"""The named starting points of the launch form: one YAML file each, beside this one.

A file holds `title`, `summary`, `group`, `position` and `config`; keys of the config that it leaves out keep
their defaults, or with `base` what the file of that name says.
"""

from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from training.contracts.config import ConfigError, Preset, parse_config

GROUPS = {
    "start": ("First steps", "Minutes on a laptop: a tiny model on small real desktops."),
    "real": ("Real weights", "A published language model that reads widgets as text."),
    "sizes": ("Qwen3-VL", "Published models on GPUs, by size and number of GPUs."),
    "osworld": ("OSWorld", "The recipes of AReaL and Slime-OSWorld on OSWorld's tasks."),
    "agents": ("Published agents", "Other models on OSWorld's tasks, each in its own words."),
    "windows": ("Windows", "By keyboard, on your own Windows image."),
}
"""Key -> (title, what for), in the order of the launch page."""
FOLDER = Path(__file__).resolve().parent


def load_presets(folder: Path = FOLDER) -> list[Preset]:
    """All presets by their file's `position`. Raises ValueError naming the file and the field."""
    # Pages ask often and YAML is slow to read: an unchanged file is not read again.
    paths = sorted(folder.glob("*.yaml"))
    return list(_load(tuple((path, path.stat().st_mtime_ns) for path in paths)))


@lru_cache(maxsize=4)
def _load(files: tuple[tuple[Path, int], ...]) -> tuple[Preset, ...]:
    found = []
    for path, _ in files:
        values = yaml.safe_load(path.read_text())
        try:
            config = parse_config(_with_base(values, path))
            preset = Preset(
                name=path.stem,
                title=values["title"],
                summary=values["summary"].strip(),
                group=known_group(values.get("group", "")),
                config=config,
            )
        except (ConfigError, KeyError, UnknownGroup, UnknownBase) as error:
            raise ValueError(f"{path.name}: {error}") from error
        found.append((values.get("position", 100), preset))
    return tuple(preset for _, preset in sorted(found, key=lambda item: (item[0], item[1].name)))


def _with_base(values: dict[str, Any], path: Path) -> dict[str, Any]:
    """The config of a file, over that of its base."""
    own: dict[str, Any] = values.get("config") or {}
    if "base" not in values:
        return own
    base = path.with_name(f"{values['base']}.yaml")
    if not base.exists():
        raise UnknownBase(f"base: there is no file {base.name}")
    return merged(yaml.safe_load(base.read_text())["config"], own)


def merged(below: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """`below` with the keys of `over`, section by section."""
    both = {key: merged(below[key], over[key]) for key in below.keys() & over if isinstance(over[key], dict)}
    return {**below, **over, **both}


class UnknownBase(ValueError):
    """Raised when a preset's file names a base that is not there."""


class UnknownGroup(ValueError):
    """Raised when a preset's file names a group that is not in GROUPS."""


def known_group(name: str) -> str:
    """The same name. Raises UnknownGroup."""
    if name not in GROUPS:
        raise UnknownGroup(f"group: {name!r} is none of {', '.join(GROUPS)}")
    return name


def load_preset(name: str) -> Preset | None:
    """One preset; None when there is no file of that name."""
    return next((preset for preset in load_presets() if preset.name == name), None)
