"""TCP ports on this machine: is one free, who has it, give me any."""

import secrets
import socket
import time
from pathlib import Path

import psutil

LOOPBACK = "127.0.0.1"
OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")
LOWEST = 10_000
"""Below are the ports that well-known services have."""
PATIENCE_S = 2.0
"""How long a server that was stopped may take to let go of its port."""


class PortTaken(Exception):
    """Raised when a port that a process needs is in use; the message says by whom and what to do."""

    def __init__(self, port: int, flag: str) -> None:
        self.port = port
        super().__init__(
            f"Port {port} is taken by {owner(port)}. Stop it, or choose another one with {flag}."
        )


def free_port() -> int:
    """A port that nothing listens on at this moment, and that no outgoing connection will be given.

    A server that is started again on its port would else find a client's connection there now and then.
    """
    above = int(OUTGOING.read_text().split()[0]) if OUTGOING.exists() else 32_768
    while True:
        port = LOWEST + secrets.randbelow(max(1000, above - LOWEST))
        if is_free(port):
            return port


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
