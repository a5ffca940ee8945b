"""A server in a thread that answers what a test lays down, whatever it is asked: hostile ones, too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from testing.servers.answering import Answer, Request, answering


@dataclass
class CannedServer:
    """By path, without what follows "?"; `otherwise` for all others."""

    url: str
    answers: dict[str, Any] = field(default_factory=dict)
    """Bytes as they are, other values as JSON."""
    otherwise: Any = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    asked: list[str] = field(default_factory=list)
    """METHOD PATH of each request."""

    def answer(self, request: Request) -> Answer:
        self.asked.append(f"{request.method} {request.path}")
        found = self.answers.get(request.path.partition("?")[0], self.otherwise)
        body = found if isinstance(found, bytes) else json.dumps(found).encode()
        return Answer(body, self.status, self.headers)


@contextmanager
def canned_server() -> Iterator[CannedServer]:
    """Serves on the loopback interface."""
    made = CannedServer("")
    with answering(made.answer) as made.url:
        yield made
