"""What the set-up steps share: places, running a command in sight, stamps that say what is installed."""

import hashlib
import os
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
VENV = REPOSITORY / ".venv"
VENV_PYTHON = VENV / "bin" / "python"


class SetupError(Exception):
    """Raised when a step cannot be done; the message tells the user what to do."""


def announce(text: str) -> None:
    print(f"setup: {text}", flush=True)


def run(command: list[str], what: str, *, quiet: tuple[str, ...] = (), path: Path | None = None) -> None:
    """Run a command and show its output as it comes, without the lines that start with `quiet`.

    `path` goes in front of PATH. Raises SetupError when the command fails.
    """
    announce(what)
    started = time.monotonic()
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    if path:
        environment["PATH"] = f"{path}{os.pathsep}{environment['PATH']}"
    process = subprocess.Popen(
        command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if not line.startswith(quiet or "\0"):
            print(f"  {line.rstrip()[:160]}", flush=True)
    if process.wait():
        raise SetupError(f"`{' '.join(command[:6])} ...` failed with exit status {process.returncode}")
    announce(f"{what}: {time.monotonic() - started:.0f} s")


def digest(parts: Iterable[str | Path]) -> str:
    """One hash over texts and the contents of files."""
    sha = hashlib.sha256()
    for part in parts:
        sha.update(part.read_bytes() if isinstance(part, Path) else part.encode())
        sha.update(b"\0")
    return sha.hexdigest()


def stamp(name: str) -> Path:
    """The file that holds the digest of what a step installed; it goes when .venv goes."""
    return VENV / f".deskhand-{name}"


def is_done(name: str, expected: str) -> bool:
    return stamp(name).is_file() and stamp(name).read_text() == expected


def mark_done(name: str, done: str) -> None:
    stamp(name).write_text(done)
