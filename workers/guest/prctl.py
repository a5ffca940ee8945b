"""What the kernel is told of a process's parent: `prctl(2)`, which Python's standard library lacks."""

import ctypes
import signal

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> None:
    """End this process when the thread that started it ends."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of every orphaned descendant, so that a reset can find them all."""
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
