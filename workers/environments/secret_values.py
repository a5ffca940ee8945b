"""Secrets of this installation, for environments."""

from django.conf import settings

from training.outgoing.secret_store import SecretError, read_secret
from workers.desktops.contract import EnvError


def secret_value(name: str) -> str:
    """A secret's value. Raises EnvError saying how to set it."""
    try:
        return read_secret(name, settings.SECRETS_DIR)
    except SecretError as error:
        raise EnvError(str(error), permanent=True) from error


def bearer(name: str) -> dict[str, str]:
    """The header with a secret as bearer token; none without a name. Raises EnvError."""
    return {"Authorization": f"Bearer {secret_value(name)}"} if name else {}
