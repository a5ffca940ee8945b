"""Keeps a request's middleware in one thread: under ASGI Django would hop to a thread and back for each of
their hooks, which costs more than they do."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_only_middleware


@sync_only_middleware
def one_thread(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """The last of the list. Django runs those before a synchronous one synchronously, too."""
    return get_response
