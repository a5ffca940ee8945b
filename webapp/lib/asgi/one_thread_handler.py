"""Runs a request's middleware and its view in one thread: Django's own handler goes to a thread and back to
the loop for the middleware and again for the view, which costs more than most of them do."""

from collections.abc import Mapping
from typing import IO, Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.http import HttpRequest, HttpResponseBase


class OneThreadHandler(ASGIHandler):
    """ASGI application: Django handles requests as under WSGI; asynchronous views still run in the loop.

    `routes`: module of the only routes that it serves; "" = those of the settings.
    """

    def __init__(self, routes: str = "") -> None:
        super().__init__()
        self._routes = routes

    def create_request(
        self, scope: Mapping[str, Any], body_file: IO[bytes]
    ) -> tuple[ASGIRequest, None] | tuple[None, HttpResponseBase]:
        made = super().create_request(scope, body_file)
        if self._routes and made[0] is not None:
            made[0].urlconf = self._routes  # type: ignore[attr-defined]  # where Django looks for routes first
        return made

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        return await sync_to_async(self.get_response)(request)
