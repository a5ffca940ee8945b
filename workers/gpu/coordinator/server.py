"""HTTP server of the coordinator, made from `training.contracts.coordinator` and the handlers beside it.

Runs in a thread of the gpu worker for one attempt; every handler is a plain function in a thread pool, so
the ORM is used as anywhere else.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import copy_context
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from training.contracts.route_types import MalformedMessage, Problem, ProblemAnswer
from webapp.lib.database_pool import lent_connection
from webapp.worker_door.trainer_requests.contract import RequestRefused
from workers.gpu.coordinator import weights_and_control_routes
from workers.gpu.coordinator.handler_contract import AttemptContext, LocalHandler, passed_on

START_TIMEOUT_S = 10.0
HANDLERS = (*passed_on(), *weights_and_control_routes.HANDLERS)


class CoordinatorServer:
    """Serves one attempt; use as a context manager."""

    def __init__(self, context: AttemptContext | None, handlers: Sequence[LocalHandler] = HANDLERS) -> None:
        """`context`: None where no handler asks anything of it."""
        self.token = secrets.token_urlsafe(24)
        self._context: Any = context
        self._handlers = handlers
        config = uvicorn.Config(
            self._application(), host="127.0.0.1", port=0, log_level="warning", access_log=False
        )
        self._server = uvicorn.Server(config)
        # Its lines of the log are about the experiment that the attempt's are about.
        run = copy_context().run
        self._thread = threading.Thread(target=run, args=(self._server.run,), name="coordinator", daemon=True)

    def __enter__(self) -> CoordinatorServer:
        self._thread.start()
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._server.started:
            if time.monotonic() > deadline:
                raise RuntimeError("the coordinator did not start")
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=10)

    @property
    def url(self) -> str:
        port = self._server.servers[0].sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}"

    def _application(self) -> Starlette:
        return Starlette(
            routes=[
                Route(handler.route.path, self._endpoint(handler), methods=[handler.route.method])
                for handler in self._handlers
            ]
        )

    def _endpoint(self, handler: LocalHandler) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            given = request.headers.get("authorization", "")
            if not secrets.compare_digest(given.encode(), f"Bearer {self.token}".encode()):
                return _problem("unauthorised", "bearer token missing or wrong", 401)
            return await run_in_threadpool(self._answer, handler, request, await request.body())

        return endpoint

    def _answer(self, handler: LocalHandler, request: Request, body: bytes) -> Response:
        with lent_connection():
            return self._answer_now(handler, request, body)

    def _answer_now(self, handler: LocalHandler, request: Request, body: bytes) -> Response:
        route = handler.route
        try:
            asked = route.read_request(request.path_params, request.query_params, body)
            answer = handler.answer(self._context, asked)
        except MalformedMessage as error:
            return _problem("bad_request", f"{route}: {error}", 400)
        except RequestRefused as error:
            return _problem(error.code, str(error), error.status)
        media_type = "image/png" if route.answers is bytes else "application/json"
        return Response(route.write_answer(answer), media_type=media_type)


def _problem(code: str, message: str, status: int) -> Response:
    answer = ProblemAnswer(error=Problem(code=code, message=message))
    return Response(answer.model_dump_json(), status, media_type="application/json")
