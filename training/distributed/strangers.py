"""Whether the processes that this one is connected with are of our own user.

gloo takes the first connection that comes for a rank, and what ranks say is unpickled: another user of this
machine who connects in a rank's place would read gradients and run code. The kernel knows whose a connection
is. Peers on other hosts are not in its tables: their network is trusted.
"""

import os
import re
from pathlib import Path

TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
ESTABLISHED, LISTENS = "01", "0A"


class StrangerConnected(Exception):
    """Raised when another user of this machine has connected in a rank's place."""


def require_own_peers() -> None:
    """Raise StrangerConnected unless all who connected to a port of this process here are of its user.

    After each new group, before anything is said in it.
    """
    mine, users, ports, peers = _own_sockets(), {}, set(), []
    for row in (line.split() for table in TABLES if Path(table).exists() for line in _rows(table)):
        here, there, state, user, inode = row[1], row[2], row[3], int(row[7]), row[9]
        users[here, there] = user
        if inode in mine and state == LISTENS:
            ports.add(_port(here))
        elif inode in mine and state == ESTABLISHED:
            peers.append((there, here))
    came = [pair for pair in peers if _port(pair[1]) in ports]
    strangers = {user for pair in came if (user := users.get(pair, os.geteuid())) != os.geteuid()}
    if strangers:
        raise StrangerConnected(
            f"user {min(strangers)} of this machine has connected in the place of a rank: nothing was sent; "
            "look who that is, and start again"
        )


def _port(address: str) -> str:
    return address.rpartition(":")[2]


def _rows(table: str) -> list[str]:
    return Path(table).read_text().splitlines()[1:]


def _own_sockets() -> set[str]:
    """Inodes of the sockets that this process has open."""
    found = set()
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{descriptor}")
        except FileNotFoundError:  # the folder's own
            continue
        if match := re.fullmatch(r"socket:\[(\d+)\]", target):
            found.add(match[1])
    return found
