"""What config sections are made of."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

Problem = tuple[str, str]
"""(field path, message) of a combination that cannot run"""


def knob(default: Any, text: str, *, unit: str = "", **bounds: Any) -> Any:
    """A config field with its help text, unit and bounds."""
    return Field(default, description=text, json_schema_extra={"unit": unit} if unit else None, **bounds)


class Section(BaseModel):
    """Base of all config sections: immutable, unknown keys refused, field order kept."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
