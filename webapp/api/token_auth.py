"""Who calls the API: a script with a token, or a signed-in browser (with CSRF protection)."""

from django.contrib.auth.models import User
from django.http import HttpRequest
from ninja.security import HttpBearer, SessionAuth

from webapp.accounts.members_and_tokens import user_of_token


class TokenAuth(HttpBearer):
    """`Authorization: Bearer dh_...` from the profile page."""

    def authenticate(self, request: HttpRequest, token: str) -> User | None:
        user = user_of_token(token)
        if user is not None:
            request.user = user
        return user


AUTH = [TokenAuth(), SessionAuth()]
