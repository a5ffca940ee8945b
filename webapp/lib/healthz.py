"""`/healthz`: is this web process able to answer from its database?"""

from django.contrib.auth.decorators import login_not_required
from django.db import connection
from django.http import HttpRequest, JsonResponse


@login_not_required
def healthz(request: HttpRequest) -> JsonResponse:
    """200 when the database answers; a database error becomes Django's 500."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        cursor.fetchone()
    return JsonResponse({"status": "ok"})
