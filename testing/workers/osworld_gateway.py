"""A gateway in front of in-guest servers of OSWorld's protocol, as AReaL's sandbox client meets one.

HTTPS, the headers x-paas-session-id and x-paas-secret-token, JSON bodies alone. Whatever is no lifecycle call
goes to the sandbox's own server unchanged: that of a real x11 desktop, which speaks the protocol.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from testing.workers.asgi_faults import Misbehaving
from testing.workers.env_server_thread import TOKEN, application, episodes_over, serving
from testing.workers.gateway_cluster import Cluster
from testing.workers.tls import make_tls
from workers.desktops.host.client import DeskHostClient
from workers.env_server.episodes import Episodes, Opener

SESSION_HEADER, TOKEN_HEADER = "x-paas-session-id", "x-paas-secret-token"
OWN_HEADERS = {SESSION_HEADER: b"x-session-id", TOKEN_HEADER: b"x-secret-token"}
LIFECYCLE = "/v1/sandboxes"


def knobs(cluster: Cluster, **changes: Any) -> dict[str, Any]:
    """The config section `desktops.gateway` for it."""
    headers = {"session_header": SESSION_HEADER, "token_header": TOKEN_HEADER}
    return cluster.knobs(**{"vendor": "osworld-guest", **headers, **changes})


class PassingOn:
    """Lifecycle calls to `inner`, the rest into the sandbox of the session."""

    def __init__(self, inner: ASGIApp, episodes: Episodes) -> None:
        self._inner = inner
        self._episodes = episodes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not scope["path"].startswith(LIFECYCLE):
            await (await self._passed_on(Request(scope, receive)))(scope, receive, send)
            return
        if scope["type"] == "http":
            known = {ours.encode(): own for ours, own in OWN_HEADERS.items()}
            headers = [(known.get(name, name), value) for name, value in scope["headers"]]
            scope = {**scope, "headers": headers}
        await self._inner(scope, receive, send)

    async def _passed_on(self, request: Request) -> Response:
        if request.headers.get(TOKEN_HEADER) != TOKEN:
            return JSONResponse({"message": "secret token is not valid"}, 401)
        session = request.headers.get(SESSION_HEADER)
        episode = next((each for each in self._episodes.held() if each.episode_id == session), None)
        if episode is None:
            return JSONResponse({"message": "no sandbox has this session"}, 404)
        body = await request.body()
        if body and request.headers.get("content-type") != "application/json":
            return JSONResponse({"message": "only application/json is passed on"}, 415)
        socket = episode.environment.desktop.lease.desktop.endpoints.agent
        transport = httpx.AsyncHTTPTransport(uds=socket)
        async with httpx.AsyncClient(transport=transport, timeout=120, base_url="http://guest") as client:
            kind = {"content-type": "application/json"} if body else {}
            answer = await client.request(request.method, request.url.path, content=body, headers=kind)
        return Response(answer.content, answer.status_code, media_type=answer.headers.get("content-type"))


@contextmanager
def running_gateway(
    desk_client: DeskHostClient, folder: Path, max_sandboxes: int, lend: Opener | None = None
) -> Iterator[Cluster]:
    """`lend`: how a sandbox's desktop is leased, where not as an env server's."""
    tls = make_tls(folder)
    episodes = episodes_over(desk_client, max_episodes=max_sandboxes, lend=lend)
    door = Misbehaving(PassingOn(application(episodes, token=TOKEN), episodes))
    with serving(door, certificate=tls.certificate, key=tls.key) as url:
        yield Cluster(url, tls, episodes, door)
