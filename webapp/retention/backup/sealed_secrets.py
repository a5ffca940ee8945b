"""The folder of secrets as one encrypted text: Fernet (AES-128-CBC, HMAC-SHA256) with a key by scrypt."""

import base64
import json
import os
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

SALT_BYTES = 16
SCRYPT_COST = 2**15
"""32 MiB and a tenth of a second for each guess."""


class WrongPassphrase(Exception):
    """Raised when the secrets cannot be opened with it."""


def seal(folder: Path, passphrase: str) -> bytes:
    """All files of the folder, encrypted."""
    files = {path.name: path.read_text() for path in sorted(folder.iterdir()) if path.is_file()}
    salt = os.urandom(SALT_BYTES)
    return salt + _cipher(passphrase, salt).encrypt(json.dumps(files).encode())


def unseal(sealed: bytes, passphrase: str, folder: Path) -> list[str]:
    """Write them back, readable by their owner alone; returns their names. Raises WrongPassphrase."""
    salt, token = sealed[:SALT_BYTES], sealed[SALT_BYTES:]
    try:
        files = json.loads(_cipher(passphrase, salt).decrypt(token))
    except InvalidToken as exc:
        raise WrongPassphrase("the passphrase does not open the secrets of this backup") from exc
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name, text in files.items():
        path = folder / Path(name).name
        path.touch(mode=0o600)
        path.write_text(text)
    return sorted(files)


def _cipher(passphrase: str, salt: bytes) -> Fernet:
    key = Scrypt(salt=salt, length=32, n=SCRYPT_COST, r=8, p=1).derive(passphrase.encode())
    return Fernet(base64.urlsafe_b64encode(key))
