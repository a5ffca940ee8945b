"""Who may send a large body, by the headers of the request alone."""

from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.http.cookie import parse_cookie

from webapp.accounts.services.tokens import find_token
from webapp.lib.database_pool import give_back_connection
from webapp.replay.services.imports import MAX_UPLOAD_BYTES
from webapp.worker_door.joined_hosts.receive import MAX_BODY_BYTES, known_host

FORM_BYTES = 1 << 20
"""Of a form around its file."""


def body_limit(scope: dict[str, Any]) -> int:
    """Bytes that a joined host, a token or a signed-in person may send; 0 of all others and of a new host."""
    headers = {name.decode("latin1"): value.decode("latin1") for name, value in scope["headers"]}
    authorization = headers.get("authorization", "")
    try:
        if scope["path"].startswith("/hosts/"):
            return MAX_BODY_BYTES if known_host(authorization) else 0
        token = authorization.removeprefix("Bearer ")
        is_known = bool(token and find_token(token)) or _is_signed_in(headers.get("cookie", ""))
    finally:
        give_back_connection()
    return MAX_UPLOAD_BYTES + FORM_BYTES if is_known else 0


def _is_signed_in(cookies: str) -> bool:
    key = parse_cookie(cookies).get(settings.SESSION_COOKIE_NAME)
    return bool(key) and SESSION_KEY in SessionStore(key)
