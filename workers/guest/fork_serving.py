"""Processes that the agent forks from itself and asks by datagrams."""

import os
import socket
from collections.abc import Callable

from workers.guest.kernel_calls import die_with_parent

ANSWER_LIMIT_S = 10.0


def fork_serving(serve: Callable[[socket.socket], object]) -> tuple[int, socket.socket]:
    """Fork a process that serves its end of a socket; its pid, and our end. It ends with us at the latest."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            ours.close()
            die_with_parent()
            serve(theirs)
            code = 0
        finally:
            os._exit(code)  # a fork must never fall back into the agent's own code
    theirs.close()
    ours.settimeout(ANSWER_LIMIT_S)
    return pid, ours
