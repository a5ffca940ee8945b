"""The base of all values that travel between processes."""

from pydantic import BaseModel, ConfigDict


class Wire(BaseModel):
    """Immutable, unknown fields refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")
