"""`Idempotency-Key`: a POST that is sent again gets the first answer, and its work is done once."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from ninja import NinjaAPI
from ninja.errors import HttpError

from webapp.accounts.services.sent_requests import OtherRequest, StillRunning, answer_once, read_sent
from webapp.api.token_auth import AUTH
from webapp.lib.error_pages import answer_error
from webapp.lib.request_values import BadValue

HEADER = "Idempotency-Key"
OTHER = f"{HEADER}: it came with another body, or to another address; send a new key with a new request."
RUNNING = f"{HEADER}: the first request with it is still at work; send the same again in a few seconds."
RETRY_AFTER_S = 2
View = Callable[..., HttpResponseBase]


def once_per_key(api: NinjaAPI, view: View) -> View:
    """The view, which answers a POST with a known key from what was kept for its sender."""

    @wraps(view)
    def answer(request: HttpRequest, **arguments: Any) -> HttpResponseBase:
        key = request.headers.get(HEADER) if request.method == "POST" else None
        if key is None or not _is_known(request):
            return view(request, **arguments)
        try:
            sent = read_sent(request, key, HEADER)
            return answer_once(sent, lambda: view(request, **arguments), lambda status: status < 500)
        except BadValue as error:
            return api.on_exception(request, error)
        except OtherRequest:
            return answer_error(request, 422, "key_used", OTHER, {HEADER: OTHER})
        except StillRunning:
            response = answer_error(request, 409, "still_running", RUNNING, {HEADER: RUNNING})
            response["Retry-After"] = str(RETRY_AFTER_S)
            return response

    return answer


def _is_known(request: HttpRequest) -> bool:
    """Whether the sender is known; who is not, or is refused, gets the view's own answer."""
    try:
        return any(allows(request) for allows in AUTH)
    except (PermissionDenied, HttpError):
        return False
