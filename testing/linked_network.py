"""A network of its own that can be cut. Needs root.

It is a namespace joined to this machine by a veth pair: with the pair's link down no packet comes through
either way.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testing.small_disk import NoGround, do

CLONE_NEWNET = 0x40000000


@dataclass
class Network:
    """A namespace and the link to it."""

    name: str
    near: str
    """This machine's address on the link."""
    far: str
    """The other side's."""

    @property
    def link(self) -> str:
        return f"{self.name}-a"

    @property
    def is_up(self) -> bool:
        return (Path("/sys/class/net") / self.link / "operstate").read_text().strip() == "up"

    def inside(self, *command: str) -> list[str]:
        """The command, run behind the link; it sees this machine's files, control groups and processes."""
        return ["nsenter", f"--net=/run/netns/{self.name}", "--", *command]

    def thread_inside(self) -> ThreadPoolExecutor:
        """A thread whose sockets, and whose children's, are behind the link; this machine's files stay."""

        def enter() -> None:
            with Path(f"/run/netns/{self.name}").open() as place:
                if ctypes.CDLL(None, use_errno=True).setns(place.fileno(), CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), f"cannot enter the network {self.name}")

        return ThreadPoolExecutor(max_workers=1, initializer=enter)

    def listeners(self) -> list[str]:
        """ADDRESS:PORT of each TCP socket behind the link that others can connect to."""
        done = subprocess.run(self.inside("ss", "-Hltn"), check=True, capture_output=True, text=True)
        found = [line.split()[3] for line in done.stdout.splitlines()]
        return sorted(one for one in found if not one.startswith(("127.", "[::1]", "[::ffff:127.")))

    def cut(self) -> None:
        do("ip", "link", "set", self.link, "down")

    def mend(self) -> None:
        do("ip", "link", "set", self.link, "up")


@contextmanager
def network(which: int = 0) -> Iterator[Network]:
    """A network of its own, gone afterwards; `which` tells several of one process apart. Raises NoGround."""
    number = (os.getpid() + 4096 * which) % 16384
    made = Network(
        f"dh{os.getpid()}{'abcd'[which]}",
        *(f"10.251.{number // 64}.{number % 64 * 4 + host}" for host in (1, 2)),
    )
    do("ip", "netns", "add", made.name)
    try:
        do("ip", "link", "add", made.link, "type", "veth", "peer", "name", "far", "netns", made.name)
        do("ip", "address", "add", f"{made.near}/30", "dev", made.link)
        do("ip", "-n", made.name, "address", "add", f"{made.far}/30", "dev", "far")
        do("ip", "-n", made.name, "link", "set", "far", "up")
        do("ip", "-n", made.name, "link", "set", "lo", "up")
        made.mend()
        yield made
    finally:
        with contextlib.suppress(NoGround):
            do("ip", "link", "delete", made.link)
        do("ip", "netns", "delete", made.name)
