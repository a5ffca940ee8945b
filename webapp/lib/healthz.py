"""`/healthz`: is this web process able to answer from its database, and is there room on the disks?"""

from django.contrib.auth.decorators import login_not_required
from django.db import connection
from django.http import HttpRequest, JsonResponse

from webapp.lib.disk_room import shortages


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
