"""The base of all values that travel between processes."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Wire(BaseModel):
    """Immutable, unknown fields refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")
