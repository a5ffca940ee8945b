"""The strip of screenshots that goes with a message, and the signed link under which chats fetch it."""

import logging
from datetime import timedelta

from django.core.signing import BadSignature, TimestampSigner

from webapp.lib.media.errors import StorageAway
from webapp.lib.request_values import row_id
from webapp.notifications.models import Delivery
from webapp.trajectories.pictures.strips import strip_of

log = logging.getLogger(__name__)
SIGNER = TimestampSigner(salt="notifications.picture", sep="~")
LINK_LIVES = timedelta(days=30)


def picture_of(frames: list[str]) -> bytes | None:
    """The strip of these screens; None without any, or while their storage does not answer."""
    try:
        return strip_of(frames)
    except (FileNotFoundError, StorageAway) as error:
        log.warning("a notification goes without its screenshots: %s", error)
        return None


def token_of(delivery: Delivery) -> str:
    """What stands in the address of its strip."""
    return SIGNER.sign(f"{delivery.pk}.{delivery.nonce}")


def delivery_of(token: str) -> Delivery | None:
    """Whose strip a token opens; None for one that is forged or old, or whose message is gone."""
    try:
        number, _, nonce = SIGNER.unsign(token, max_age=LINK_LIVES).partition(".")
    except BadSignature:
        return None
    return Delivery.objects.filter(pk=row_id(number) or 0, nonce=nonce).first()
