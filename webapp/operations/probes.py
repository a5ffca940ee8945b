"""`/livez`: does this web process answer at all? `/healthz`: with its database? `/readyz`: can work go on?"""

from collections.abc import Callable
from datetime import timedelta

from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponseBase, JsonResponse

from webapp import __version__
from webapp.dispatcher.models import last_beat
from webapp.lib.disk_room import shortages
from webapp.operations.redis_state import redis_answers

NOT_READY = 503
DISPATCHER_SILENT = timedelta(seconds=15)
"""It beats every 2 s; a tick with much to do takes a few."""
ABSENT = "does not answer"


class ProbeMiddleware:
    """Answers probes under any host name: they come from this machine or its container's engine, which know
    no name of DESKHAND_ALLOWED_HOSTS."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        is_of_joined_hosts = hasattr(request, "urlconf")  # that port tells strangers nothing
        probe = None if is_of_joined_hosts else PROBES.get(request.path)
        return (probe or self.get_response)(request)


def livez(request: HttpRequest) -> JsonResponse:
    """200 also while the database is away: starting this process again would not bring it back."""
    return JsonResponse({"status": "alive"})


@login_not_required
def healthz(request: HttpRequest) -> JsonResponse:
    """200 when the database answers; a database error becomes Django's 500.

    A disk without room is named and still 200: starting this process again would help nothing.
    """
    _ask_database()
    missing = [shortage.in_short for shortage in shortages()]
    state = {"status": "waits for disk space", "disk": missing} if missing else {"status": "ok"}
    return JsonResponse(state | {"version": __version__})


@login_not_required
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when database and Redis answer and a dispatcher was seen lately, else 503; each by its name."""
    try:
        _ask_database()
        parts = {"database": "ok", "dispatcher": _dispatcher()}
    except DatabaseError:
        parts = {"database": ABSENT, "dispatcher": "unknown without the database"}
    parts["redis"] = "ok" if redis_answers() else ABSENT
    is_ready = set(parts.values()) == {"ok"}
    return JsonResponse(
        {"status": "ready" if is_ready else "not ready", **parts}, status=200 if is_ready else NOT_READY
    )


def _ask_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        cursor.fetchone()


def _dispatcher() -> str:
    beat = last_beat()
    if beat is None:
        return "never seen"
    # A clock that was set back makes the beat lie ahead; as far ahead as that nothing was heard either.
    is_seen = abs(beat[0]) < DISPATCHER_SILENT
    return "ok" if is_seen else f"silent for {abs(beat[0]).total_seconds():.0f} s"


PROBES: dict[str, Callable[[HttpRequest], HttpResponseBase]] = {
    "/livez": livez,
    "/healthz": healthz,
    "/readyz": readyz,
}
