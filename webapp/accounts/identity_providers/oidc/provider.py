"""The provider that the settings name: where people are sent, and what it then says of them.

Authlib checks signature, issuer, audience, nonce and end of the ID token; PKCE is always used.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from typing import Annotated, Any

from authlib.integrations.base_client import OAuthError
from authlib.integrations.django_client import DjangoOAuth2App, OAuth
from authlib.integrations.requests_client import OAuth2Session
from django.conf import settings
from django.core.exceptions import DisallowedRedirect
from django.http import HttpRequest, HttpResponse
from joserfc.errors import JoseError
from pydantic import BaseModel, ConfigDict, StringConstraints
from requests import RequestException, Response

from training.outgoing.secret_store import SecretError, read_secret

CLIENT_SECRET = "oidc-client-secret"
TIMEOUT_S = 10.0
MOST_BYTES = 1 << 20
SIGNED_BY_A_KEY = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Providers may list others, and `none`; a token of those could be anyone's."""
Text = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]
MALFORMED = (RequestException, ValueError, TypeError, AttributeError, KeyError, RuntimeError)
"""What an answer of another kind than Authlib believes in ends as."""


class Claims(BaseModel):
    """What is used of a person's claims, as our columns hold it."""

    model_config = ConfigDict(extra="allow", strict=True)
    sub: Annotated[Text, StringConstraints(min_length=1, max_length=255)]
    email: Annotated[Text, StringConstraints(max_length=254)] | None = None
    preferred_username: Text | None = None


class SignInRefused(Exception):
    """Raised when the provider, or what it says, lets the person not in; the message is for people."""


def is_configured() -> bool:
    return bool(settings.OIDC_ISSUER)


def send_to_provider(request: HttpRequest, come_back_to: str) -> HttpResponse:
    """A redirect to the provider's sign-in page. Raises SignInRefused."""
    with _refusing("The provider does not answer as one"):
        return _client(settings.OIDC_ISSUER, settings.OIDC_CLIENT_ID).authorize_redirect(
            request, come_back_to
        )


def claims_of_answer(request: HttpRequest) -> dict[str, Any]:
    """What the provider says of the person whom it sent back. Raises SignInRefused."""
    client = _client(settings.OIDC_ISSUER, settings.OIDC_CLIENT_ID)
    with _refusing("What the provider sent cannot be used"):
        token = client.authorize_access_token(request)
        claims = dict(token.get("userinfo") or {})
        if (
            claims
            and settings.OIDC_GROUPS_CLAIM not in claims
            and "userinfo_endpoint" in client.server_metadata
        ):
            more = client.userinfo(token=token)
            claims |= more if more.get("sub") == claims.get("sub") else {}
        if claims:
            Claims.model_validate(claims)
    issuer = str(claims.get("iss", ""))
    if not claims or issuer.rstrip("/") != settings.OIDC_ISSUER.rstrip("/"):
        raise SignInRefused(
            "What the provider sent names no person, or another issuer than DESKHAND_OIDC_ISSUER."
        )
    return claims


@contextmanager
def _refusing(what: str) -> Iterator[None]:
    """Raises SignInRefused for all that ends a call of Authlib."""
    try:
        yield
    except OAuthError as error:
        raise SignInRefused(f"The provider refused: {error.description or error.error}") from error
    except (JoseError, DisallowedRedirect, *MALFORMED) as error:
        raise SignInRefused(f"{what}: {str(error)[:300]}") from error


class _Session(OAuth2Session):  # type: ignore[misc]
    """Reads no answer without end."""

    def request(self, *arguments: Any, **options: Any) -> Response:
        ends = time.monotonic() + TIMEOUT_S
        answer = super().request(*arguments, stream=True, **options)
        body = BytesIO()
        for piece in answer.iter_content(1 << 14):
            if body.write(piece) and (body.tell() > MOST_BYTES or time.monotonic() > ends):
                answer.close()
                raise RequestException("the answer is too long")
        whole = Response()
        whole.status_code, whole.headers, whole.url = answer.status_code, answer.headers, answer.url
        body.seek(0)
        whole.raw = body
        return whole


class _App(DjangoOAuth2App):  # type: ignore[misc]
    client_cls = _Session

    def load_server_metadata(self) -> Any:
        metadata = super().load_server_metadata()
        offered = metadata.get("id_token_signing_alg_values_supported") or SIGNED_BY_A_KEY
        metadata["id_token_signing_alg_values_supported"] = [one for one in offered if one in SIGNED_BY_A_KEY]
        return metadata


@cache
def _client(issuer: str, client_id: str) -> Any:
    """Loads what the provider says of itself when it is first needed, not when we start."""
    try:
        secret = read_secret(CLIENT_SECRET, settings.SECRETS_DIR)
    except SecretError as error:
        raise SignInRefused(f"Single sign-on is not set up: {error}") from error
    return OAuth().register(
        "single_sign_on",
        client_cls=_App,
        client_id=client_id,
        client_secret=secret,
        server_metadata_url=f"{issuer.rstrip('/')}/.well-known/openid-configuration",
        client_kwargs={
            "scope": "openid profile email",
            "code_challenge_method": "S256",
            "default_timeout": TIMEOUT_S,
        },
    )
