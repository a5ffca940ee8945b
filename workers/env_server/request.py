"""One request, as a handler sees it."""

from dataclasses import dataclass, field
from typing import Any

from training.contracts.types import Task
from workers.env_server.episodes import Episodes


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What handlers know of the server."""

    episodes: Episodes
    provider: str
    screen: tuple[int, int]
    """Of episodes whose client asks for none, pixels."""
    tasks: tuple[Task, ...] = ()
    """Its own, for clients that bring none."""


@dataclass(frozen=True, slots=True)
class Call:
    """A parsed request; handlers are plain functions of it, run in threads."""

    server: ServerFacts
    fields: dict[str, Any]
    """The JSON body."""
    path: dict[str, str] = field(default_factory=dict)
    query: dict[str, str] = field(default_factory=dict)
    holder: str = ""
    """Where it comes from, for people."""
    key: str = ""
    """Idempotency-Key: repeated with the same key, nothing is done twice."""
    session: str = ""
    """The sandbox that the request is for."""
