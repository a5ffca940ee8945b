"""Where a rule may point: public addresses and networks that the installation names, and granted secrets."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from training.contracts.remote_addresses import RefusedAddress, check_url
from training.contracts.secret_grants import GrantError, check_grant
from webapp.accounts.models import Team
from webapp.lib.request_values import BadValue
from webapp.notifications.models import MAX_TARGET, Channel

MAX_ADDRESSES = 10
SECRET = "{secret}"


def check_target(*, team: Team, channel: str, target: str, secret: str) -> None:
    """Raise BadValue naming the field, unless the team may send there by this channel."""
    if len(target) > MAX_TARGET:
        raise BadValue("target", f"longer than {MAX_TARGET} characters")
    if Channel(channel).is_url:
        _check_url(target)
        _check_secret(team, Channel(channel), target, secret)
        return
    if secret:
        raise BadValue("secret", f"is for webhooks and chats, not for {channel}")
    if channel == Channel.EMAIL:
        _check_addresses(target)
    elif target:
        raise BadValue("target", "browsers need none: leave it empty")


def _check_url(target: str) -> None:
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


def _check_secret(team: Team, channel: Channel, target: str, secret: str) -> None:
    is_chat = channel is not Channel.WEBHOOK
    if is_chat and (SECRET in target) != bool(secret):
        raise BadValue("secret", f"name the one that stands for {SECRET} in the URL, or leave both out")
    if not secret:
        return
    try:
        check_grant(settings.SECRETS_DIR, secret=secret, team=team.name, urls=[target])
    except GrantError as refused:
        raise BadValue("secret", str(refused)) from refused


def _check_addresses(target: str) -> None:
    if not settings.MAIL_SERVER.host:
        raise BadValue("target", "no mail server: an administrator sets DESKHAND_EMAIL_URL")
    addresses = [address.strip() for address in target.split(",")]
    if len(addresses) > MAX_ADDRESSES:
        raise BadValue("target", f"at most {MAX_ADDRESSES} addresses")
    for address in addresses:
        try:
            validate_email(address)
        except ValidationError as error:
            raise BadValue("target", f"'{address[:80]}' is no e-mail address") from error
