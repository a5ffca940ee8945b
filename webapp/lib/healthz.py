"""`/healthz`: is this web process able to answer from its database, and is there room on the disks?"""

from collections.abc import Callable

from django.contrib.auth.decorators import login_not_required
from django.db import connection
from django.http import HttpRequest, HttpResponseBase, JsonResponse

from webapp.lib.disk_room import shortages

PATH = "/healthz"


class ProbeMiddleware:
    """Answers probes under any host name: they come from this machine or its container's engine, which know
    no name of DESKHAND_ALLOWED_HOSTS."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return healthz(request) if request.path == PATH else self.get_response(request)


@login_not_required
def healthz(request: HttpRequest) -> JsonResponse:
    """200 when the database answers; a database error becomes Django's 500.

    A disk without room is told and still 200: starting this process again would help nothing.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        cursor.fetchone()
    missing = [shortage.in_short for shortage in shortages()]
    return JsonResponse({"status": "waits for disk space", "disk": missing} if missing else {"status": "ok"})
