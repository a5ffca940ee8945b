"""Tickets for the env worker's relay: HMAC-signed, for one trajectory, valid for a moment."""

from django.core import signing

SALT = "deskhand.screen-relay"
MAX_AGE_S = 30


def make_ticket(trajectory_id: int) -> str:
    """One line of printable ASCII that opens the screen of this trajectory."""
    return signing.dumps(trajectory_id, salt=SALT)


def read_ticket(ticket: str) -> int | None:
    """The trajectory of a valid ticket; None for a forged or old one."""
    try:
        found = signing.loads(ticket, salt=SALT, max_age=MAX_AGE_S)
    except signing.BadSignature:
        return None
    return found if isinstance(found, int) else None
