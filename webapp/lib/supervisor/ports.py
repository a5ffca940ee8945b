"""TCP ports on this machine: is one free, who has it, give me any."""

import socket
import time

import psutil

LOOPBACK = "127.0.0.1"
PATIENCE_S = 2.0
"""How long a server that was told to stop may take to let go of its port."""


class PortTaken(Exception):
    """Raised when a port that a process needs is in use; the message says by whom and what to do."""

    def __init__(self, port: int, flag: str) -> None:
        self.port = port
        super().__init__(
            f"Port {port} is taken by {owner(port)}. Stop it, or choose another one with {flag}."
        )


def free_port() -> int:
    """A port that nothing listens on at this moment."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return probe.getsockname()[1]


def is_free(port: int, host: str = LOOPBACK) -> bool:
    """True when a server could listen on the port now (lingering closed connections do not count)."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True


def require_free(port: int, flag: str, host: str = LOOPBACK) -> None:
    """Raise PortTaken, naming the `flag` that changes the port, when it stays in use."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_free(port, host):
        if time.monotonic() > deadline:
            raise PortTaken(port, flag)
        time.sleep(0.1)


def owner(port: int) -> str:
    """Words for the process that listens on the port."""
    try:
        connections = psutil.net_connections(kind="tcp")
    except psutil.AccessDenied:
        return "another process"
    for connection in connections:
        listening = connection.status == psutil.CONN_LISTEN and connection.laddr.port == port
        if listening and connection.pid:
            try:
                return f"process {connection.pid} ({psutil.Process(connection.pid).name()})"
            except psutil.NoSuchProcess:
                break
    return "a process of another user"
