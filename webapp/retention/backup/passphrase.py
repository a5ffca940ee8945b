"""Where the passphrase of a backup's secrets comes from: never a command line, which others can see."""

from pathlib import Path

LEAST_CHARS = 12


def read_passphrase(file: Path | None) -> str:
    """The first line of the file; "" without a file. Raises OSError, and ValueError when it is too short."""
    if file is None:
        return ""
    lines = file.read_text().splitlines()
    passphrase = lines[0].strip() if lines else ""
    if len(passphrase) < LEAST_CHARS:
        raise ValueError(f"{file}: the passphrase needs at least {LEAST_CHARS} characters")
    return passphrase
