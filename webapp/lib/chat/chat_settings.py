"""Which language model is asked, and whether this installation lets a team ask it."""

from collections.abc import Iterator

from django.conf import settings
from pydantic import BaseModel, ConfigDict, Field, field_validator

from training.contracts.config.providers.checked_url import checked_url
from training.outgoing.remote_addresses import RefusedAddress, check_url
from training.outgoing.secret_grants import GrantError, check_grant
from training.outgoing.secret_store import NAME as SECRET_NAME


class ChatModel(BaseModel):
    """A model at an OpenAI-compatible server."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str = Field(default="", max_length=300)
    """Of the server, up to and with /v1."""
    model: str = Field(default="", max_length=200)
    secret: str = Field(default="", max_length=64)
    """Name of the secret with its key; "" = the server asks for none."""

    @field_validator("url")
    @classmethod
    def _plain_url(cls, url: str) -> str:
        return checked_url(url, ("http", "https")) if url else ""

    @field_validator("secret")
    @classmethod
    def _secret_name(cls, secret: str) -> str:
        if secret and not SECRET_NAME.fullmatch(secret):
            raise ValueError("name a secret: small letters, digits, dots and dashes")
        return secret


def chat_problems(chat: ChatModel, team: str) -> Iterator[tuple[str, str]]:
    """(field, why this installation does not let a team of this name ask it)"""
    try:
        check_url(chat.url, settings.REMOTE_NETWORKS)
    except RefusedAddress as refused:
        yield "url", str(refused)
    try:
        if chat.secret:
            check_grant(settings.SECRETS_DIR, secret=chat.secret, team=team, urls=[chat.url])
    except GrantError as refused:
        yield "secret", str(refused)
