"""A server in a thread that answers a table of routes, where there is no installation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from testing.servers.answering import Answer, Request, answering
from training.contracts.route_types import MalformedMessage, Problem, ProblemAnswer, Route


class Refused(Exception):
    """Raised by a handler that answers with an error."""

    def __init__(self, status: int, message: str, *, code: str = "refused") -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class RouteServer:
    """Serves on a free port of the loopback interface from its making until `close`.

    Handlers are called by several threads, with what their route asks; they return what it answers.
    """

    def __init__(
        self,
        handlers: Mapping[Route[Any, Any], Callable[[Any], Any]],
        *,
        token: str,
        before: Callable[[Route[Any, Any], Any], None] = lambda route, asked: None,
    ) -> None:
        """`before` hears every authorised request, and may refuse it."""
        self._handlers = handlers
        self._token = token
        self._before = before
        self._running = ExitStack()
        self.url = self._running.enter_context(answering(self._serve))

    def close(self) -> None:
        self._running.close()

    def _serve(self, request: Request) -> Answer:
        try:
            return Answer(self._answer(request))
        except Refused as refused:
            problem = ProblemAnswer(error=Problem(code=refused.code, message=str(refused)))
            return Answer(problem.model_dump_json().encode(), refused.status)

    def _answer(self, request: Request) -> bytes:
        url = urlsplit(request.path)
        if request.headers.get("Authorization") != f"Bearer {self._token}":
            raise Refused(401, "wrong token")
        for route, handle in self._handlers.items():
            in_path = route.match(request.method, url.path)
            if in_path is None:
                continue
            try:
                asked = route.read_request(in_path, dict(parse_qsl(url.query)), request.body)
            except MalformedMessage as error:
                raise Refused(400, f"{route}: {error}") from error
            self._before(route, asked)
            return route.write_answer(handle(asked))
        raise Refused(404, f"no route {request.method} {url.path}")
