"""What a protocol of the env server is made of."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.websockets import WebSocket

from workers.env_server.request import Call, ServerFacts

Handler = Callable[[Call], Any]
"""A plain function, run in a thread; it returns JSON or a Response."""
Routes = Mapping[tuple[str, str], Handler]
"""(method, path) -> handler."""
Run = Callable[[Handler, Call], Awaitable[Any]]
"""Runs a handler in a thread; a reset waits there for a free desktop."""
Serve = Callable[[WebSocket, ServerFacts, Run], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Dialect:
    """The routes of one protocol."""

    routes: Routes
    waiting_routes: Routes = field(default_factory=dict)
    """These are tried again while the server is full."""
    sockets: Mapping[str, Serve] = field(default_factory=dict)
    """Path -> what answers a WebSocket there."""
