"""Answers to errors that no view has answered: pages to browsers, text to their scripts, JSON to the API."""

import sys

from django.core.exceptions import BadRequest, RequestDataTooBig, SuspiciousOperation
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views import defaults
from django.views.decorators.csrf import requires_csrf_token

from webapp.lib.media.errors import StorageAway
from webapp.lib.outage_retries import is_disk_full

API = "/api/"
RETRY_AFTER_S = 5
BROKEN = "Something broke on our side; the log of the web process has the details."
NO_SUCH = "No such thing, or it belongs to a team that you are not in."
NOT_ALLOWED = "Your role in the team does not include this."


def is_api(request: HttpRequest) -> bool:
    """True for what answers scripts: every error of it is JSON."""
    return request.path.startswith(API)


def error_body(code: str, message: str, fields: dict[str, str] | None = None) -> dict[str, object]:
    """The one form of the API's errors."""
    return {"error": {"code": code, "message": message, "fields": fields or {}}}


def answer_error(
    request: HttpRequest, status: int, code: str, message: str, fields: dict[str, str] | None = None
) -> HttpResponse:
    """The error in the form that the caller reads."""
    if is_api(request):
        return JsonResponse(error_body(code, message, fields), status=status)
    if request.headers.get("Sec-Fetch-Dest") == "empty":
        return HttpResponse(message, status=status, content_type="text/plain; charset=utf-8")
    return render(request, "refused.html", {"code": status, "message": message}, status=status)


@requires_csrf_token
def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400, or 413 for a body that is too long."""
    if isinstance(exception, RequestDataTooBig):
        return answer_error(request, 413, "too_large", "body: it is too long; send less at once.")
    field = getattr(exception, "field", "")
    message = str(exception) if isinstance(exception, BadRequest) and str(exception) else ""
    if not message and isinstance(exception, SuspiciousOperation):
        message = "The request is not one that this server can read."
    message = message or "The request cannot be read."
    return answer_error(request, 400, "bad_request", message, {field: message} if field else None)


@requires_csrf_token
def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_api(request):
        return answer_error(request, 403, "forbidden", str(exception) or NOT_ALLOWED)
    return defaults.permission_denied(request, exception)


@requires_csrf_token
def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_api(request):
        return answer_error(request, 404, "not_found", NO_SUCH)
    return defaults.page_not_found(request, exception)


@requires_csrf_token
def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    if is_api(request):
        return answer_error(request, 403, "forbidden", f"CSRF check failed: {reason}")
    return render(request, "403_csrf.html", status=403)


@requires_csrf_token
def server_error(request: HttpRequest) -> HttpResponse:
    """500; 503 when the database or the storage is busy or away, 507 when the disk is full: they pass by
    themselves or by an operator's hand, and none is a bug."""
    error = sys.exc_info()[1]
    if isinstance(error, StorageAway):
        message = "The storage of screenshots does not answer. Try again in a moment."
        response = answer_error(request, 503, "storage_away", message)
        response["Retry-After"] = str(RETRY_AFTER_S)
        return response
    if isinstance(error, OperationalError) and not is_disk_full(error):
        message = "The database is busy or does not answer; nothing was stored. Try again in a moment."
        response = answer_error(request, 503, "database_busy", message)
        response["Retry-After"] = str(RETRY_AFTER_S)
        return response
    if error is not None and is_disk_full(error):
        message = "The disk of the data folder is full; nothing was stored. Make room, then try again."
        return answer_error(request, 507, "disk_full", message)
    if is_api(request) or request.headers.get("Sec-Fetch-Dest") == "empty":
        return answer_error(request, 500, "error", BROKEN)
    return defaults.server_error(request)
