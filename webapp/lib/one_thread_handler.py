"""Runs a request's middleware and its view in one thread: Django's own handler goes to a thread and back to
the loop for the middleware and again for the view, which costs more than most of them do."""

from __future__ import annotations

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest, HttpResponseBase


class OneThreadHandler(ASGIHandler):
    """ASGI application: Django handles requests as under WSGI; asynchronous views still run in the loop."""

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        return await sync_to_async(self.get_response)(request)
