"""What faults need of the machine: a small disk, and a network that can be cut. Both need root.

The disk is an ext4 file system in a file, mounted where the desk host keeps its overlays. The network is a
namespace joined to this machine by a veth pair: with the pair's link down no packet comes through either way.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

DISK_MB = 3500
"""Sparse; machines leave 2 GB free."""
FILLER = ".filler"


class NoGround(Exception):
    """Raised when this user or machine does not allow it; the message says what is missing."""


def do(*command: str) -> None:
    """Run one of the system's tools. Raises NoGround with its words."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as exc:
        raise NoGround(f"{command[0]} is not installed") from exc
    if done.returncode:
        raise NoGround(f"{' '.join(command)}: {done.stderr.strip()}")


@contextmanager
def small_disk(place: Path) -> Iterator[Path]:
    """A file system of its own at `place`, gone afterwards."""
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    image = place.with_name(f"{place.name}.ext4")
    with open(image, "wb") as file:
        file.truncate(DISK_MB << 20)
    try:
        do("mkfs.ext4", "-q", "-m", "0", str(image))
        do("mount", "-o", "loop", str(image), str(place))
        try:
            (place / "lost+found").rmdir()
            place.chmod(0o700)
            yield place
        finally:
            # What still ends there keeps it busy for a moment: detached now, unmounted when it is gone.
            do("umount", "--lazy", str(place))
    finally:
        image.unlink(missing_ok=True)  # with the folder of the installation


def fill(place: Path) -> None:
    """Take the last byte of a file system, without writing any."""
    size = 1 << 40
    with open(place / FILLER, "wb") as file:
        while size >= 1:
            try:
                os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, size)
            except OSError:
                size //= 2


def make_room(place: Path) -> None:
    (place / FILLER).unlink(missing_ok=True)


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

    def inside(self, *command: str) -> list[str]:
        """The command, run behind the link; it sees this machine's files, control groups and processes."""
        return ["nsenter", f"--net=/run/netns/{self.name}", "--", *command]

    def cut(self) -> None:
        do("ip", "link", "set", self.link, "down")

    def mend(self) -> None:
        do("ip", "link", "set", self.link, "up")


@contextmanager
def network() -> Iterator[Network]:
    """A network of its own, gone afterwards."""
    number = os.getpid() % 16384
    made = Network(
        f"dh{os.getpid()}", *(f"10.251.{number // 64}.{number % 64 * 4 + host}" for host in (1, 2))
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
