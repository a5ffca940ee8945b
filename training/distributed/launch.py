"""Starts the ranks of one program on this host.

    python -m training.distributed.launch --ranks N [--gang FILE] -m MODULE ARGUMENTS

Ranks meet in a file of a private folder, and gloo and NCCL connect over the loopback interface, so nothing
listens on the network. (torchrun's rendezvous does, and unpickles what it reads there.) SIGTERM goes on to
every rank. A rank that crashes ends the others, and its code is the launcher's: 128 + N after signal N.

With `--gang` each of several hosts starts its N ranks so. They meet and connect by torch's own means, on
addresses of the network that the operator named, and of no other.
"""

import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from training.contracts.trainer_exit import PLANNED

STORE_VARIABLE = "DESKHAND_RANK_STORE"
"""Where the ranks meet: a file, or of several hosts STORE_OF_HOSTS and an address."""
STORE_OF_HOSTS = "tcp:"
STORE_LISTENER_VARIABLE = "DESKHAND_RANK_STORE_LISTENER"
"""Of the first rank: the open socket that it serves the store on."""
LOOPBACK = {"GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "lo"}
CRASH_GRACE_S = 5.0
"""Peers of a crashed rank wait in a collective that never ends; nothing of theirs is worth more patience."""
DIE_WITH_LAUNCHER = ("setpriv", "--pdeathsig", "KILL", "--")


@dataclass(frozen=True, slots=True)
class Gang:
    """The hosts that train together, as each of them knows it."""

    host: int
    """This one's place."""
    addresses: tuple[tuple[str, int], ...]
    """IP address of each host in the network that the operator named, with a port; that of the first one is
    where the ranks meet."""
    interface: str
    """This host's, in that network."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Of JSON: host, addresses ["IP:PORT", ...] and interface. Raises ValueError."""
        try:
            found = json.loads(path.read_text())
            addresses = tuple(_address(text) for text in found["addresses"])
            gang = cls(int(found["host"]), addresses, str(found["interface"]))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path}: {error!r}; a gang has host, addresses and interface") from error
        if not 0 <= gang.host < len(addresses):
            raise ValueError(f"{path}: host {gang.host} is none of its {len(addresses)} addresses")
        return gang


def _address(text: str) -> tuple[str, int]:
    name, _, port = text.rpartition(":")
    if not name or not port.isdigit():
        raise ValueError(f"{text!r} is no address: write IP:PORT")
    return name, int(port)


@dataclass(frozen=True, slots=True)
class Place:
    """This host's ranks among all."""

    first: int
    size: int
    environment: Mapping[str, str]
    first_only: Mapping[str, str] = field(default_factory=dict)
    """More variables of the very first rank."""
    keeps: tuple[int, ...] = ()
    """Descriptors that it inherits."""


def main(arguments: list[str] | None = None) -> int:
    """Start the ranks and wait for them; the exit code of the first that crashed, else of rank 0."""
    parser = argparse.ArgumentParser(
        prog="python -m training.distributed.launch", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--ranks", type=int, required=True, help="processes on this host")
    parser.add_argument("--gang", type=Path, help="file that names the hosts, when there are several")
    parser.add_argument("-m", dest="module", required=True, help="the module that every rank runs")
    options, rest = parser.parse_known_args(arguments)
    command = [sys.executable, "-m", options.module, *rest]
    with tempfile.TemporaryDirectory(prefix="deskhand-ranks-") as folder:
        if options.gang is None:
            store = {STORE_VARIABLE: str(Path(folder) / "store")}
            return Ranks(command, options.ranks, Place(0, options.ranks, LOOPBACK | store)).wait()
        return run_in_gang(command, options.ranks, Gang.read(options.gang))


def run_in_gang(command: list[str], count: int, gang: Gang) -> int:
    """As `main`, for this host's ranks of several."""
    where, port = gang.addresses[0]
    environment = {
        "GLOO_SOCKET_IFNAME": gang.interface,
        "NCCL_SOCKET_IFNAME": f"={gang.interface}",
        STORE_VARIABLE: f"{STORE_OF_HOSTS}{where}:{port}",
    }
    with socket.socket() as listener:
        first_only: dict[str, str] = {}
        keeps: tuple[int, ...] = ()
        if gang.host == 0:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((where, port))
            first_only, keeps = {STORE_LISTENER_VARIABLE: str(listener.fileno())}, (listener.fileno(),)
        place = Place(count * gang.host, count * len(gang.addresses), environment, first_only, keeps)
        return Ranks(command, count, place).wait()


class Ranks:
    """The processes of one run on this host: started together, ended together."""

    def __init__(self, command: list[str], count: int, place: Place) -> None:
        """Start them. Only the main thread may: the kernel ends them when the thread that started them
        ends."""
        # A crash in native code says in the log where Python was.
        fixed = {"WORLD_SIZE": str(place.size), "PYTHONFAULTHANDLER": "1"}
        shared = os.environ | place.environment | fixed
        if place.size > 1:
            shared.setdefault("OMP_NUM_THREADS", "1")
        self._running: dict[int, int] = {}
        """pid -> rank"""
        signal.signal(signal.SIGTERM, lambda number, _frame: self._send(number))
        for local in range(count):
            rank = place.first + local
            own = {"RANK": str(rank), "LOCAL_RANK": str(local), **(place.first_only if rank == 0 else {})}
            process = subprocess.Popen(
                [*DIE_WITH_LAUNCHER, *command], env=shared | own, pass_fds=place.keeps if rank == 0 else ()
            )
            self._running[process.pid] = rank
            process.returncode = 0  # `wait` reaps every child itself

    def wait(self) -> int:
        """Until all have ended."""
        codes: dict[int, int] = {}
        crash: int | None = None
        while self._running:
            pid, status = os.wait()
            if pid not in self._running:
                continue
            rank, code = self._running.pop(pid), os.waitstatus_to_exitcode(status)
            codes[rank] = code
            if code not in PLANNED and crash is None:
                crash = code
                if code < 0:
                    _say_signal(rank, -code)
                self._end_the_others()
        code = codes[min(codes)] if crash is None else crash
        return code if code >= 0 else 128 - code

    def _end_the_others(self) -> None:
        self._send(signal.SIGTERM)
        killer = threading.Timer(CRASH_GRACE_S, self._send, [signal.SIGKILL])
        killer.daemon = True
        killer.start()

    def _send(self, number: int) -> None:
        for pid in list(self._running):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def _say_signal(rank: int, number: int) -> None:
    sys.stderr.write(f"rank {rank} of the trainer was ended by {signal.Signals(number).name}\n")


if __name__ == "__main__":
    sys.exit(main())
