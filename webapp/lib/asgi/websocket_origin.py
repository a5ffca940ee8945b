"""WebSockets from our own pages only: browsers let any page open one, with the visitor's cookies."""

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.http.request import split_domain_port, validate_host

Application = Callable[[dict[str, Any], Any, Any], Awaitable[None]]


class OwnOrigin:
    """Passes a connection whose Origin is the host and port that it came to, or a trusted origin."""

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        headers = {name: value.decode("latin1") for name, value in scope.get("headers", [])}
        if is_own(headers.get(b"origin", ""), headers.get(b"host", "")):
            await self.application(scope, receive, send)
        else:
            await WebsocketDenier()(scope, receive, send)


def is_own(origin: str, host: str) -> bool:
    """True when a page of `origin` may connect to `host`, a name with its port."""
    if origin in settings.CSRF_TRUSTED_ORIGINS:
        return True
    domain, _ = split_domain_port(host)
    parts = urlsplit(origin)
    is_http = parts.scheme in ("http", "https")
    return is_http and parts.netloc == host and validate_host(domain, settings.ALLOWED_HOSTS)
