"""The provider that the settings name: where people are sent, and what it then says of them.

Authlib checks signature, issuer, audience, nonce and end of the ID token; PKCE is always used.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from authlib.integrations.base_client import OAuthError
from authlib.integrations.django_client import OAuth
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from joserfc.errors import JoseError
from requests import RequestException

from training.outgoing.secret_store import SecretError, read_secret

CLIENT_SECRET = "oidc-client-secret"
TIMEOUT_S = 10.0


class SignInRefused(Exception):
    """Raised when the provider, or what it says, lets the person not in; the message is for people."""


def is_configured() -> bool:
    return bool(settings.OIDC_ISSUER)


def send_to_provider(request: HttpRequest, come_back_to: str) -> HttpResponse:
    """A redirect to the provider's sign-in page. Raises SignInRefused."""
    try:
        return _client(settings.OIDC_ISSUER, settings.OIDC_CLIENT_ID).authorize_redirect(
            request, come_back_to
        )
    except (RequestException, ValueError, RuntimeError) as error:
        raise SignInRefused(f"The provider does not answer as one: {error}") from error


def claims_of_answer(request: HttpRequest) -> dict[str, Any]:
    """What the provider says of the person whom it sent back. Raises SignInRefused."""
    client = _client(settings.OIDC_ISSUER, settings.OIDC_CLIENT_ID)
    try:
        token = client.authorize_access_token(request)
        claims = dict(token.get("userinfo") or {})
        if (
            claims
            and settings.OIDC_GROUPS_CLAIM not in claims
            and "userinfo_endpoint" in client.server_metadata
        ):
            more = client.userinfo(token=token)
            claims |= more if more.get("sub") == claims.get("sub") else {}
    except OAuthError as error:
        raise SignInRefused(f"The provider refused: {error.description or error.error}") from error
    except (JoseError, RequestException, ValueError) as error:
        raise SignInRefused(f"What the provider sent cannot be used: {error}") from error
    issuer = str(claims.get("iss", ""))
    if not claims.get("sub") or issuer.rstrip("/") != settings.OIDC_ISSUER.rstrip("/"):
        raise SignInRefused(
            "What the provider sent names no person, or another issuer than DESKHAND_OIDC_ISSUER."
        )
    return claims


@cache
def _client(issuer: str, client_id: str) -> Any:
    """Loads what the provider says of itself when it is first needed, not when we start."""
    try:
        secret = read_secret(CLIENT_SECRET, settings.SECRETS_DIR)
    except SecretError as error:
        raise SignInRefused(f"Single sign-on is not set up: {error}") from error
    return OAuth().register(
        "single_sign_on",
        client_id=client_id,
        client_secret=secret,
        server_metadata_url=f"{issuer.rstrip('/')}/.well-known/openid-configuration",
        client_kwargs={
            "scope": "openid profile email",
            "code_challenge_method": "S256",
            "default_timeout": TIMEOUT_S,
        },
    )
