"""How reports of joined hosts travel: several at once, with the screenshots that they name."""

from pydantic import BaseModel, ConfigDict, Field


class SentReport(BaseModel):
    """One report of a batch."""

    model_config = ConfigDict(extra="forbid")
    number: int = Field(ge=1, lt=2**63)
    name: str
    body: str
    """The arguments as JSON."""
    trajectory: int | None = None
    """That it is about."""


class NamedFrame(BaseModel):
    """A screenshot that reports of a batch name."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    team: int
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    size: int = Field(default=0, ge=0)
    """Bytes of its PNG behind the batch; 0 = not sent, because the server had it."""


class Batch(BaseModel):
    """Reports in the order of their numbers. The PNGs of its frames follow it, one behind the other."""

    model_config = ConfigDict(extra="forbid")
    stream: str = Field(min_length=1, max_length=32)
    reports: list[SentReport] = Field(min_length=1)
    frames: list[NamedFrame] = []


class Received(BaseModel):
    """How far the stream has come."""

    number: int
    refused: dict[int, str]
    """Number -> why it could not be recorded."""
    missing: list[NamedFrame] = []
    """Screenshots that are no longer here and have to be sent with the batch: nothing was recorded."""
