"""The named starting points of the launch form: one YAML file each, beside this one.

A file holds `title`, `summary` and `config`; keys of the config that it leaves out keep their defaults.
"""

from functools import lru_cache
from pathlib import Path

import yaml

from training.config import ConfigError, Preset, parse_config

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
            config = parse_config(values.get("config") or {})
            preset = Preset(
                name=path.stem, title=values["title"], summary=values["summary"].strip(), config=config
            )
        except (ConfigError, KeyError) as error:
            raise ValueError(f"{path.name}: {error}") from error
        found.append((values.get("position", 100), preset))
    return tuple(preset for _, preset in sorted(found, key=lambda item: (item[0], item[1].name)))


def load_preset(name: str, folder: Path = FOLDER) -> Preset | None:
    """One preset; None when there is no file of that name."""
    return next((preset for preset in load_presets(folder) if preset.name == name), None)
