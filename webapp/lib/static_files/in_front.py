"""Static files out of the collected folder, answered before Django is asked: a page loads twenty of them,
and nothing of it is painted before its stylesheets are there.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from csp.utils import build_policy
from django.conf import settings
from whitenoise.middleware import WhiteNoiseMiddleware

Application = Callable[[dict[str, Any], Any, Any], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]


class StaticFilesInFront(WhiteNoiseMiddleware):
    """ASGI application: WhiteNoise's files, with the headers that Django puts on pages; else `application`.

    Bodies are sent whole: the largest is 2 MB. Behind https a plain request is Django's, which redirects it.
    """

    def __init__(self, application: Application) -> None:
        super().__init__()
        self.inner = application
        policy = build_policy() or ""
        shared = {"content-security-policy": policy, "x-content-type-options": "nosniff"}
        if settings.SECURE_HSTS_SECONDS:
            shared["strict-transport-security"] = f"max-age={settings.SECURE_HSTS_SECONDS}"
        self.shared_headers = encoded(shared.items())

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        path = scope["path"]
        found = self.find_file(path) if self.autorefresh else self.files.get(path)
        if found is None or (settings.SECURE_SSL_REDIRECT and not is_secure(scope)):
            await self.inner(scope, receive, send)
            return
        answer = found.get_response(scope["method"], environment(scope))
        body = b""
        if answer.file is not None:
            with answer.file:
                body = answer.file.read()
        headers = [*encoded(answer.headers), *self.shared_headers]
        await send({"type": "http.response.start", "status": answer.status.value, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def environment(scope: dict[str, Any]) -> dict[str, str]:
    """The request's headers as WSGI names them, which WhiteNoise reads."""
    return {
        f"HTTP_{name.decode('latin1').upper().replace('-', '_')}": value.decode("latin1")
        for name, value in scope["headers"]
    }


def is_secure(scope: dict[str, Any]) -> bool:
    """Whether the proxy in front says so."""
    forwarded = settings.SECURE_PROXY_SSL_HEADER
    if forwarded is not None and environment(scope).get(forwarded[0]) == forwarded[1]:
        return True
    return scope["scheme"] == "https"


def encoded(headers: Any) -> Headers:
    """As ASGI sends them."""
    return [(name.lower().encode("latin1"), value.encode("latin1")) for name, value in headers]
