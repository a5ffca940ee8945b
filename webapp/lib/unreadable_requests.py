"""What every request must be before a view sees it: UTF-8, without NUL, and JSON where JSON is read."""

import re
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase

from webapp.lib.error_pages import answer_error, is_api
from webapp.lib.request_values import check_text

UNSUPPORTED_TYPE = 415
WRONG_METHOD = 405
CHARSETS = {"", "utf-8", "utf8", "us-ascii"}
WITH_BODY = {"POST", "PUT", "PATCH"}
UPLOADS = re.compile(r"/api/v1/(replay/imports|tasks/[\w-]+/files)")
"""Where the API takes a file, as a form."""


class EdgeMiddleware:
    """Refuses what no view could use, so that views need not think of it. Raises BadValue in `process_view`,
    which Django answers like one of a view."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Before anything reads the body: a text in another encoding cannot be read at all."""
        charset = request.content_params.get("charset", "") if request.content_params else ""
        if charset.strip("\"' ").lower() not in CHARSETS:
            problem = "Content-Type: send UTF-8; this names another charset."
            return answer_error(request, UNSUPPORTED_TYPE, "unsupported_type", problem)
        response = self.get_response(request)
        return _in_words(request, response) if response.status_code == WRONG_METHOD else response

    def process_view(
        self,
        request: HttpRequest,
        view_func: Callable[..., HttpResponseBase],
        view_args: tuple[Any, ...],
        view_kwargs: dict[str, Any],
    ) -> HttpResponse | None:
        check_text(request.path, "path")
        for field, values in request.GET.lists():
            _check_all(field, values)
        if request.method not in WITH_BODY:
            return None
        if is_api(request) and not _is_upload(request):
            return _refuse_form(request)
        for field, values in request.POST.lists():
            _check_all(field, values)
        for field, files in request.FILES.lists():
            _check_all(field, [file.name or "" for file in files])
        return None


def _in_words(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """The framework answers a wrong method with nothing, for which browsers show a page of their own."""
    message = f"{request.method} is not known here."
    if request.method == "GET":
        message = "This address only takes what a form or a button sends; open the page that has it."
    answer = answer_error(request, WRONG_METHOD, "wrong_method", message)
    answer["Allow"] = response["Allow"]
    return answer


def _check_all(field: str, values: list[str]) -> None:
    check_text(field, "field name")
    for value in values:
        check_text(value, field)


def _is_upload(request: HttpRequest) -> bool:
    return bool(UPLOADS.fullmatch(request.path)) and request.content_type == "multipart/form-data"


def _refuse_form(request: HttpRequest) -> HttpResponse | None:
    """The API reads JSON only, but for files. A form's body is gone once Django has read it as a form."""
    if request.content_type in ("application/json", ""):
        return None
    if request.headers.get("Content-Length", "0") in ("", "0"):
        return None
    wanted = "multipart/form-data" if UPLOADS.fullmatch(request.path) else "application/json"
    problem = f"Content-Type: send {wanted}."
    return answer_error(request, UNSUPPORTED_TYPE, "unsupported_type", problem)
