"""Show a process that gives up root some folders below folders that are closed to its new user.

A checkout in /root or a data folder of mode 0700 is no reason to open either: in a mount namespace of its
own, the process sees an empty folder in the closed one's place, and in that only what it needs.
"""

import ctypes
import os
from collections.abc import Iterable
from pathlib import Path

CLONE_NEWNS = 0x00020000
MS_BIND, MS_REC, MS_SLAVE = 0x1000, 0x4000, 0x80000
COVER = b"mode=755,size=1m"


class NoView(Exception):
    """Raised when the kernel does not allow it; the message says what."""


def show_only(paths: Iterable[Path], uid: int, gid: int) -> None:
    """Make these folders reachable for a user, for this process and its children. Needs root.

    Nothing happens when all of them are reachable already. Raises NoView.
    """
    wanted = sorted({path.resolve() for path in paths}, key=lambda path: len(path.parts))
    if not any(is_closed(folder, uid, gid) for path in wanted for folder in path.parents):
        return
    here = Path.cwd()
    old_umask = os.umask(0o022)  # the folders made here are to be passed through
    try:
        _show(wanted, uid, gid)
    finally:
        os.umask(old_umask)
    os.chdir(here if here.exists() else "/")  # the same path in the new view


def _show(wanted: list[Path], uid: int, gid: int) -> None:
    _unshare_mounts()
    handles = {path: os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC) for path in wanted}
    for path, handle in handles.items():
        for folder in reversed(path.parents):
            if folder.exists() and is_closed(folder, uid, gid):
                _mount("tmpfs", folder, b"tmpfs", 0, COVER)
        if not path.exists() or not os.path.samestat(os.stat(path), os.fstat(handle)):
            path.mkdir(parents=True, exist_ok=True)
            _mount(f"/proc/self/fd/{handle}", path, None, MS_BIND | MS_REC, None)
        os.close(handle)


def is_closed(folder: Path, uid: int, gid: int) -> bool:
    """Whether a user may not pass through a folder."""
    there = os.stat(folder)
    if there.st_uid == uid:
        return not there.st_mode & 0o100
    return not there.st_mode & (0o010 if there.st_gid == gid else 0o001)


_libc = ctypes.CDLL(None, use_errno=True)


def _unshare_mounts() -> None:
    if _libc.unshare(CLONE_NEWNS):
        raise NoView(f"no mount namespace: {os.strerror(ctypes.get_errno())}")
    _mount("none", Path("/"), None, MS_REC | MS_SLAVE, None)


def _mount(source: str, target: Path, kind: bytes | None, flags: int, options: bytes | None) -> None:
    if _libc.mount(source.encode(), os.fsencode(target), kind, ctypes.c_ulong(flags), options):
        raise NoView(f"mount on {target}: {os.strerror(ctypes.get_errno())}")
