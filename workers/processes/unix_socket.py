"""Unix sockets by path, also by paths longer than the 107 bytes that the kernel's address takes.

A checkout in a deep folder is no reason to fail: the socket's folder is opened and named through
`/proc/self/fd`, which is short.
"""

import atexit
import contextlib
import errno
import functools
import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

MAX_PATH_BYTES = 107


@contextlib.contextmanager
def short_path(path: str) -> Iterator[str]:
    """A name for `path` that fits into a socket address; valid inside the block. Raises OSError."""
    if len(os.fsencode(path)) <= MAX_PATH_BYTES:
        yield path
        return
    folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{os.path.basename(path)}"
    finally:
        os.close(folder)


@functools.cache
def short_alias(path: str) -> str:
    """`path`, or a link to it that fits into a socket address and lasts as long as this process."""
    if len(os.fsencode(path)) <= MAX_PATH_BYTES:
        return path
    folder = tempfile.mkdtemp(prefix="deskhand-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    link = os.path.join(folder, "s")
    os.symlink(os.path.abspath(path), link)
    return link


def connect_unix(path: str, timeout_s: float | None = None) -> socket.socket:
    """A connected stream socket. Raises OSError.

    What lies at the path must be a socket itself, of its folder's owner or of ours: a link put there would
    have us talk to another program of this machine, with our rights.
    """
    there = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        _require_own_socket(path, there)
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        connection.settimeout(timeout_s)
        try:
            connection.connect(f"/proc/self/fd/{there}")
        except OSError:
            connection.close()
            raise
        return connection
    finally:
        os.close(there)


def _require_own_socket(path: str, handle: int) -> None:
    found = os.fstat(handle)
    owners = {0, os.geteuid(), os.stat(os.path.dirname(path) or ".").st_uid}
    if not stat.S_ISSOCK(found.st_mode) or found.st_uid not in owners:
        raise ConnectionRefusedError(errno.ECONNREFUSED, "no socket of its folder's owner", path)


def listen_unix(path: Path) -> socket.socket:
    """A listening stream socket that only this user may connect to. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    old_umask = os.umask(0o177)
    try:
        with short_path(str(path)) as address:
            listener.bind(address)
    finally:
        os.umask(old_umask)
    listener.listen()
    return listener
