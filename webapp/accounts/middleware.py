"""Every view needs a signed-in person unless it says otherwise."""

from collections.abc import Callable
from typing import Any

from django.contrib.auth import middleware
from django.http import HttpRequest, HttpResponse, HttpResponseBase


class LoginRequiredMiddleware(middleware.LoginRequiredMiddleware):
    """Django's own, with two differences.

    A view that needs no sign-in costs no query (frames are asked for many times a second), and a script of
    an open page gets 401 instead of the sign-in page's HTML, which it would take for its answer.
    """

    def process_view(
        self,
        request: HttpRequest,
        view_func: Callable[..., HttpResponseBase],
        view_args: tuple[Any, ...],
        view_kwargs: dict[str, Any],
    ) -> HttpResponseBase | None:
        if not getattr(view_func, "login_required", True):
            return None
        return super().process_view(request, view_func, view_args, view_kwargs)

    def handle_no_permission(  # type: ignore[override]  # Django's own only redirects
        self, request: HttpRequest, view_func: Callable[..., HttpResponseBase]
    ) -> HttpResponseBase:
        if request.headers.get("Sec-Fetch-Dest") != "empty":
            return super().handle_no_permission(request, view_func)
        return HttpResponse("You are signed out.", status=401, content_type="text/plain")
