"""The secret store: configs name a secret, its value comes from the environment or from a private file.

    name "vendor-token" -> variable DESKHAND_SECRET_VENDOR_TOKEN, else file SECRETS_DIR/vendor-token (0600)
Values are never logged and never part of an error message.
"""

import os
import re
import secrets
import stat
from collections.abc import Callable
from pathlib import Path

NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,63}")
"""No underscore: this installation's own keys in the same folder have one; no config may send them away."""
RESERVED = frozenset({"key"})
"""DESKHAND_SECRET_KEY signs sessions."""


class SecretError(ValueError):
    """Raised when a secret is missing, empty or readable by others; the message says what to do."""


def variable_of(name: str) -> str:
    return f"DESKHAND_SECRET_{re.sub('[.-]', '_', name).upper()}"


def read_secret(name: str, folder: Path) -> str:
    """The value of a secret. Raises SecretError."""
    if not NAME.fullmatch(name) or name in RESERVED:
        raise SecretError(f"secret {name!r}: use small letters, digits, dots and dashes, and not 'key'")
    value = os.environ.get(variable_of(name), "").strip() or _from_file(name, folder / name)
    if not value.isascii() or any(char.isspace() for char in value):
        raise SecretError(f"secret {name}: it holds a space or a letter that cannot be sent in a header")
    return value


def stored_secret(path: Path, make: Callable[[], str] = lambda: secrets.token_urlsafe(48)) -> str:
    """The secret kept in `path` (mode 0600), made on first use.

    Two processes may start at once: the file appears under its name only when complete, and the
    first one to link it wins.
    """
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        draft.touch(mode=0o600)
        draft.write_text(make())
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text().strip()


def _from_file(name: str, path: Path) -> str:
    where = f"set {variable_of(name)} or write it to {path} (mode 0600)"
    try:
        mode = path.stat().st_mode
        value = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SecretError(f"secret {name} is missing; {where}") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SecretError(f"secret {name}: others may read {path}; run chmod 600 on it")
    if not value:
        raise SecretError(f"secret {name} is empty; {where}")
    return value
