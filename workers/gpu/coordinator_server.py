"""The coordinator: what the trainer may ask of the product, over HTTP on loopback (docs/contracts.md).

Runs in a thread of the gpu worker for one attempt; every handler is a plain function in a
thread pool, so the ORM is used as anywhere else.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from typing import Any

import uvicorn
from django.core.files.storage import default_storage
from django.db import close_old_connections
from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from workers.gpu import coordinator_routes
from workers.gpu.coordinator_routes import Context, Handler

START_TIMEOUT_S = 10.0


class Coordinator:
    """HTTP server of one attempt; use as a context manager."""

    def __init__(self, context: Context) -> None:
        self.token = secrets.token_urlsafe(24)
        self._context = context
        config = uvicorn.Config(
            self._application(), host="127.0.0.1", port=0, log_level="warning", access_log=False
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, name="coordinator", daemon=True)

    def __enter__(self) -> Coordinator:
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
        routes = [Route("/frames/{sha256}", self._frame, methods=["GET"])]
        for (method, path), handler in coordinator_routes.HANDLERS.items():
            routes.append(Route(path, self._endpoint(handler), methods=[method]))
        return Starlette(routes=routes)

    def _authorised(self, request: Request) -> bool:
        given = request.headers.get("authorization", "")
        return secrets.compare_digest(given, f"Bearer {self.token}")

    def _endpoint(self, handler: Handler) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            if not self._authorised(request):
                return _problem("unauthorised", "bearer token missing or wrong", 401)
            body = await request.json() if request.method == "POST" else None
            parameters = {**request.query_params, **request.path_params}
            return await _in_thread(handler, self._context, body, parameters)

        return endpoint

    async def _frame(self, request: Request) -> Response:
        if not self._authorised(request):
            return _problem("unauthorised", "bearer token missing or wrong", 401)
        sha = request.path_params["sha256"]
        name = f"frames/{sha[:2]}/{sha}.png"
        if not sha.isalnum() or not default_storage.exists(name):
            return _problem("unknown_frame", f"no frame {sha}", 404)
        with default_storage.open(name) as stream:
            return Response(stream.read(), media_type="image/png")


async def _in_thread(handler: Handler, context: Context, body: Any, parameters: dict[str, str]) -> Response:
    def call() -> Response:
        close_old_connections()
        try:
            answer = handler(context, body, parameters)
        except (ValidationError, KeyError) as error:
            return _problem("bad_request", str(error), 400)
        except coordinator_routes.Refused as error:
            return _problem("refused", str(error), error.status)
        return JSONResponse(_plain(answer))

    return await run_in_threadpool(call)


def _plain(answer: Any) -> Any:
    if isinstance(answer, BaseModel):
        return answer.model_dump(mode="json")
    if isinstance(answer, list):
        return [_plain(item) for item in answer]
    if isinstance(answer, dict):
        return {key: _plain(value) for key, value in answer.items()}
    return answer


def _problem(code: str, message: str, status: int) -> JSONResponse:
    return JSONResponse({"error": {"code": code, "message": message}}, status_code=status)
