"""Routing, tokens, threads and the reaper of the env server.

The token comes as `Authorization: Bearer`, as the gateway's token header, or, for clients that can send
neither, in front of the path: http://HOST:PORT/token/TOKEN
"""

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from workers.desktops.contract import EnvError
from workers.env_server.dialects.contract import Handler, Routes, Serve
from workers.env_server.dialects.registry import DIALECTS
from workers.env_server.episodes import UnknownEpisode
from workers.env_server.request import Call, ServerFacts
from workers.env_server.wire_fields import BadRequest, problem, read_fields
from workers.environments.contract import AtCapacity
from workers.tasks.errors import TaskError

log = logging.getLogger("env server")

MAX_BODY_BYTES = 64 << 20
REAP_EVERY_S = 1.0
TRY_AGAIN_S = 0.5
REFUSED = 1008
"""A WebSocket that is closed before it is accepted is a 403 for its client."""
SESSION_HEADER, TOKEN_HEADER = "x-session-id", "x-secret-token"


class EnvServer:
    """The ASGI application over some episodes."""

    def __init__(self, facts: ServerFacts, *, token: str, wait_s: float) -> None:
        self._facts = facts
        self._token = token
        self._wait_s = wait_s
        # An episode has at most one call at work and few that wait for it.
        self._threads = ThreadPoolExecutor(4 * facts.episodes.max_episodes + 4, "env-server")

    def application(self) -> ASGIApp:
        routes: list[BaseRoute] = [Route("/health", self._health)]
        for dialect in DIALECTS:
            routes += self._routes(dialect.routes, 0.0)
            routes += self._routes(dialect.waiting_routes, self._wait_s)
            routes += [self._socket(path, serve) for path, serve in dialect.sockets.items()]
        inner = Starlette(routes=routes, lifespan=self._lifespan)
        return TokenGate(inner, self._token)

    def _routes(self, table: Routes, wait_s: float) -> list[BaseRoute]:
        return [self._route(method, path, handler, wait_s) for (method, path), handler in table.items()]

    def _route(self, method: str, path: str, handler: Handler, wait_s: float) -> Route:
        async def endpoint(request: Request) -> Response:
            try:
                call = await self._read(request)
                return await self._answer(handler, call, time.monotonic() + wait_s)
            except BadRequest as error:
                return problem(error)

        return Route(path, endpoint, methods=[method], name=f"{method} {path}")

    async def _read(self, request: Request) -> Call:
        fields = read_fields(await read_body(request))
        client = request.client
        return Call(
            server=self._facts,
            fields=fields,
            path=dict(request.path_params),
            query=dict(request.query_params),
            holder=f"{client.host}:{client.port}" if client else "",
            key=request.headers.get("idempotency-key", ""),
            session=request.headers.get(SESSION_HEADER, ""),
        )

    def _socket(self, path: str, serve: Serve) -> WebSocketRoute:
        async def run(handler: Handler, call: Call) -> Any:
            return await self._run(handler, call, time.monotonic() + self._wait_s)

        async def endpoint(socket: WebSocket) -> None:
            await serve(socket, self._facts, run)

        return WebSocketRoute(path, endpoint)

    async def _answer(self, handler: Handler, call: Call, deadline: float) -> Response:
        try:
            answer = await self._run(handler, call, deadline)
            return answer if isinstance(answer, Response) else JSONResponse(answer)
        except (AtCapacity, UnknownEpisode, BadRequest, TaskError, EnvError) as error:
            return problem(error)
        except Exception as error:
            log.exception("call failed")
            return JSONResponse({"error": f"env server error: {error!r}", "code": "server"}, 500)

    async def _run(self, handler: Handler, call: Call, deadline: float) -> Any:
        """Run the handler in a thread, again while the server is full and the client may wait."""
        while True:
            try:
                return await asyncio.get_running_loop().run_in_executor(self._threads, handler, call)
            except AtCapacity:
                if time.monotonic() >= deadline:
                    raise
                await asyncio.sleep(TRY_AGAIN_S)

    async def _health(self, _request: Request) -> Response:
        count, limit = len(self._facts.episodes), self._facts.episodes.max_episodes
        both = {"episodes": count, "max_episodes": limit, "active_sessions": count, "max_envs": limit}
        return JSONResponse({"status": "ok", **both, "idempotency_keys": True, "types_any_text": True})

    @contextlib.asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        reaper = asyncio.create_task(self._reap())
        try:
            yield
        finally:
            reaper.cancel()
            await asyncio.to_thread(self._facts.episodes.close_all)
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def _reap(self) -> None:
        while True:
            await asyncio.sleep(REAP_EVERY_S)
            await asyncio.to_thread(self._facts.episodes.close_silent)


class TokenGate:
    """Lets through what knows the token; takes a token out of the path."""

    def __init__(self, inner: ASGIApp, token: str) -> None:
        self._inner = inner
        self._token = token
        self._with_path = Starlette(routes=[Mount("/token/{token}", app=self._mounted)])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._inner(scope, receive, send)
        elif scope["path"].startswith("/token/"):
            await self._with_path(scope, receive, send)
        else:
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            bearer = headers.get("authorization", "").removeprefix("Bearer ")
            await self._checked(headers.get(TOKEN_HEADER) or bearer, scope, receive, send)

    async def _mounted(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._checked(scope["path_params"]["token"], scope, receive, send)

    async def _checked(self, given: str, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._token or secrets.compare_digest(given.encode(), self._token.encode()):
            await self._inner(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": REFUSED})
        else:
            text = "token missing or wrong; send it as Authorization: Bearer"
            answer = JSONResponse(
                {"error": text, "code": "unauthorised"}, 401, {"WWW-Authenticate": "Bearer"}
            )
            await answer(scope, receive, send)


async def read_body(request: Request) -> bytes:
    """The whole body. Raises BadRequest above MAX_BODY_BYTES."""
    parts, size = [], 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > MAX_BODY_BYTES:
                raise BadRequest(f"the body is larger than {MAX_BODY_BYTES} bytes")
            parts.append(part)
    except ClientDisconnect as error:
        raise BadRequest("the client went away") from error
    return b"".join(parts)
