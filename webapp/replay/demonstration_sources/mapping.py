"""The mapping file: where a set of demonstrations keeps its episodes, steps, pictures and actions."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from training.contracts.types import ActionKind

SHIPPED = {file.parent.name: file for file in sorted(Path(__file__).parent.glob("*/mapping.yaml"))}
"""Name of the set -> its mapping; a set is one folder here, and no row elsewhere."""


class MappingError(ValueError):
    """Raised when a mapping file cannot be used; names the field."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ActionForm(_Strict):
    """What an action of the set is here. `point`, `target` and `text` are places in the step."""

    kind: ActionKind
    point: str = ""
    target: str = ""
    text: str = ""
    keys: tuple[str, ...] = ()
    status: Literal["success", "failure"] | None = None


class Mapping(_Strict):
    """Places are dotted, with numbers for items of lists: `value.code`, `info.0`."""

    episodes: str
    """Files below the folder, as a pattern: .jsonl holds one episode per line, .json one or a list."""
    pictures: str = "."
    """Folder of the pictures, below the folder of the set."""
    task_id: str
    instruction: tuple[str, ...]
    """Places that are tried one after the other."""
    domain: str = ""
    keep: dict[str, Any] = Field(default_factory=dict)
    """Place -> value: episodes with other values are left out."""
    steps: str
    picture: str
    thought: str = ""
    coordinates: Literal["fraction", "permille", "pixels"]
    code: str = ""
    """Place of pyautogui code; or `kind` and `actions`."""
    kind: str = ""
    argument: str = ""
    """Where it is a word, "KIND WORD" is looked up in `actions` first."""
    actions: dict[str, ActionForm] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_form(self) -> Mapping:
        if bool(self.code) == bool(self.kind and self.actions):
            raise ValueError("name either code, or kind and actions")
        return self


def read_mapping(name: str) -> Mapping:
    """A shipped mapping by its name, or a YAML file by its path. Raises MappingError."""
    path = SHIPPED.get(name) or Path(name)
    try:
        return Mapping.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except OSError as error:
        known = ", ".join(SHIPPED)
        raise MappingError(f"{name}: {error.strerror}; name a YAML file, or one of {known}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise MappingError(f"{path}: not YAML: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise MappingError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def at(values: Any, place: str) -> Any:
    """The value at a dotted place; None where there is none."""
    for part in place.split(".") if place else ():
        if isinstance(values, list) and part.isdecimal() and int(part) < len(values):
            values = values[int(part)]
        elif isinstance(values, dict):
            values = values.get(part)
        else:
            return None
    return values
