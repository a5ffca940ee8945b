"""Parents, namespaces and rights of processes: kernel calls that Python 3.11's standard library lacks.

What may fail raises OSError with what was tried.
"""

import contextlib
import ctypes
import os
import signal
from collections.abc import Iterator

CLONE_NEWNS = 0x00020000
CLONE_NEWPID = 0x20000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
FILE_FLAGS = MS_NOSUID | MS_NODEV
PROC_FLAGS = FILE_FLAGS | MS_NOEXEC
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 4, 22, 38, 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
SECCOMP_MODE_FILTER = 2
FILTER_ENTRY_BYTES = 8
SET_QUOTA_OF_USER = 0x800008 << 8
BLOCK_AND_INODE_LIMITS = 1 | 4
CAPABILITY_VERSION_3 = 0x20080522
_libc = ctypes.CDLL(None, use_errno=True)


class _FilterProgram(ctypes.Structure):
    """`struct sock_fprog` of linux/filter.h."""

    _fields_ = [("num_entries", ctypes.c_ushort), ("entries", ctypes.c_char_p)]


class _Quota(ctypes.Structure):
    """`struct if_dqblk` of linux/quota.h; space in KiB."""

    _fields_ = [
        *((name, ctypes.c_uint64) for name in ("space", "space_soft", "space_now")),
        *(
            (name, ctypes.c_uint64)
            for name in ("inodes", "inodes_soft", "inodes_now", "grace", "grace_inodes")
        ),
        ("valid", ctypes.c_uint32),
    ]


def _check(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def die_with_parent() -> None:
    """End this process when the thread that started it ends."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of every orphaned descendant, so that a reset can find them all."""
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1)


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare")


def join(handle: int, flags: int = 0) -> None:
    """Join the namespace of an open /proc/PID/ns file; of CLONE_NEWPID, only children to come do."""
    _check(_libc.setns(handle, flags), "setns")


def mount(kind: str, target: str, flags: int, options: str = "") -> None:
    """Mount a new file system of this kind."""
    name = kind.encode()
    done = _libc.mount(name, target.encode(), name, ctypes.c_ulong(flags), options.encode())
    _check(done, f"mount {kind} on {target}")


def limit_files(device: str, uid: int, *, space_mb: int, inodes: int) -> None:
    """What this user may keep on a file system mounted with `usrquota`. Needs root."""
    quota = _Quota(space=space_mb << 10, inodes=inodes, valid=BLOCK_AND_INODE_LIMITS)
    done = _libc.quotactl(SET_QUOTA_OF_USER, device.encode(), uid, ctypes.byref(quota))
    _check(done, f"quota of user {uid} on {device}")


@contextlib.contextmanager
def children_go_to(pid: int) -> Iterator[None]:
    """Inside the block, processes that this one forks are born in the pid namespace of `pid`."""
    own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    try:
        there = os.open(f"/proc/{pid}/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        try:
            join(there, CLONE_NEWPID)
        finally:
            os.close(there)
        try:
            yield
        finally:
            join(own, CLONE_NEWPID)
    finally:
        os.close(own)


def hide_memory() -> None:
    """No other process of this user may trace this one or look into it."""
    _check(_libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "prctl dumpable")


def keep_rights_to_oneself() -> None:
    """Programs that this process starts get none of its capabilities."""
    _check(_libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0), "prctl ambient")


def become(uid: int, gid: int) -> None:
    """Be this user for good, with this group alone. Needs root."""
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)


@contextlib.contextmanager
def with_files_of(uid: int, gid: int) -> Iterator[None]:
    """Inside the block files are opened and made as this user would; nothing else changes. Needs root."""
    before = _libc.setfsgid(gid), _libc.setfsuid(uid)
    try:
        yield
    finally:
        _libc.setfsuid(before[1])
        _libc.setfsgid(before[0])


def give_up_rights() -> None:
    """No capability is left, and no program can bring one back."""
    _check(_libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl no_new_privs")
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    _check(_libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")


def filter_calls(program: bytes) -> None:
    """Have the kernel refuse what this filter refuses, for good. Needs `give_up_rights` before."""
    what = _FilterProgram(len(program) // FILTER_ENTRY_BYTES, program)
    _check(_libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(what), 0, 0), "prctl seccomp")
