"""Who calls the API: a script with a token, or a signed-in browser (with CSRF protection)."""

from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from ninja.security import HttpBearer, SessionAuth

from webapp.accounts.access import memberships
from webapp.accounts.models import Membership, Scope
from webapp.accounts.services.tokens import find_token

TEAM_HEADER = "Deskhand-Team"


class TokenAuth(HttpBearer):
    """`Authorization: Bearer dh_...` from the profile page, and with `Deskhand-Team: NAME` in which team."""

    def authenticate(self, request: HttpRequest, token: str) -> User | None:
        found = find_token(token)
        if found is None:
            return None
        request.user = found.user
        request.token_scope = Scope(found.scope)  # type: ignore[attr-defined]  # read where roles are
        request.token_pk = found.pk  # type: ignore[attr-defined]  # read where keys of requests are
        if wanted := request.headers.get(TEAM_HEADER):
            request.membership = _membership(request, wanted)  # type: ignore[attr-defined]
        return found.user


def _membership(request: HttpRequest, team: str) -> Membership:
    for held in memberships(request):
        if held.team.name == team:
            return held
    raise PermissionDenied(f"{TEAM_HEADER}: you are in no team of that name; see /api/v1/me.")


class BrowserAuth(SessionAuth):
    """The session of a signed-in person; without one the answer is 401, whatever the CSRF token is."""

    def __call__(self, request: HttpRequest) -> Any:
        return super().__call__(request) if request.user.is_authenticated else None


AUTH = [TokenAuth(), BrowserAuth()]
