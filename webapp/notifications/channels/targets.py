"""Where a rule may point: public addresses and networks that the installation names, and granted secrets."""

from urllib.parse import urlsplit

from django.conf import settings

from training.outgoing.remote_addresses import RefusedAddress, check_url
from training.outgoing.secret_grants import GrantError, check_grant
from webapp.accounts.models import Team
from webapp.lib.request_values import BadValue

MAX_TARGET = 1000
SECRET = "{secret}"


def check_length(target: str) -> None:
    if len(target) > MAX_TARGET:
        raise BadValue("target", f"longer than {MAX_TARGET} characters")


def check_signed_url(team: Team, target: str, secret: str) -> None:
    """A URL whose secret, if any, signs what is sent. Raises BadValue."""
    _check_url(target)
    _check_secret(team, target, secret)


def check_secret_url(team: Team, target: str, secret: str) -> None:
    """A URL in which the secret has a place. Raises BadValue."""
    _check_url(target)
    if (SECRET in target) != bool(secret):
        raise BadValue("secret", f"name the one that stands for {SECRET} in the URL, or leave both out")
    _check_secret(team, target, secret)


def refuse_secret(channel: str, secret: str) -> None:
    if secret:
        raise BadValue("secret", f"is for webhooks and chats, not for {channel}")


def _check_url(target: str) -> None:
    check_length(target)
    try:
        parts = urlsplit(target)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url or parts.username is not None or any(char.isspace() for char in target):
        raise BadValue("target", "use https://HOST/PATH, without a user name")
    if SECRET in parts.netloc:
        raise BadValue("target", f"{SECRET} may stand in the path only")
    try:
        check_url(target, settings.REMOTE_NETWORKS)
    except RefusedAddress as refused:
        raise BadValue("target", str(refused)) from refused


def _check_secret(team: Team, target: str, secret: str) -> None:
    if not secret:
        return
    try:
        check_grant(settings.SECRETS_DIR, secret=secret, team=team.name, urls=[target])
    except GrantError as refused:
        raise BadValue("secret", str(refused)) from refused
