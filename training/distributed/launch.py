"""Starts the ranks of one program on this host.

    python -m training.distributed.launch --ranks N [--gang FILE] -m MODULE ARGUMENTS

Ranks meet in a file of a private folder, and gloo and NCCL connect over the loopback interface, so nothing
listens on the network. (torchrun's rendezvous does, and unpickles what it reads there.) SIGTERM goes on to
every rank. A rank that crashes ends the others, and its code is the launcher's: 128 + N after signal N.

With `--gang` (`training.distributed.gang`) each of several hosts starts its N ranks so; `host_mesh` connects
them. A host that is lost ends the ranks of the others.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from training.contracts.trainer_exit import PLANNED
from training.distributed.gang import Gang
from training.distributed.host_mesh import GangIncomplete, HostMesh

STORE_VARIABLE = "DESKHAND_RANK_STORE"
"""Where the ranks meet: a file, or of several hosts STORE_OF_HOSTS and an address."""
STORE_OF_HOSTS = "tcp:"
STORE_LISTENER_VARIABLE = "DESKHAND_RANK_STORE_LISTENER"
"""Of the first rank: the open socket that it serves the store on."""
LOOPBACK = {"GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "lo"}
CRASH_GRACE_S = 5.0
"""Peers of a crashed rank wait in a collective that never ends; nothing of theirs is worth more patience."""
DIE_WITH_LAUNCHER = ("setpriv", "--pdeathsig", "KILL", "--")
HOST_LOST = 70
"""EX_SOFTWARE of sysexits.h: a crash, whatever the ranks were ended with."""


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
        return run_in_gang(command, options.ranks, Gang.read(options.gang), Path(folder))


def run_in_gang(command: list[str], count: int, gang: Gang, folder: Path) -> int:
    """As `main`, when all hosts of the gang have come."""
    own = gang.loopback_of(gang.host)
    with ExitStack() as stack:
        ranks: list[Ranks] = []
        mesh = stack.enter_context(HostMesh(gang, folder, lambda host: _lose(ranks, gang, host)))
        listener = stack.enter_context(socket.socket())
        port = 0
        first_only: dict[str, str] = {}
        keeps: tuple[int, ...] = ()
        if gang.host == 0:
            listener.bind((own, 0))
            port = listener.getsockname()[1]
            first_only, keeps = {STORE_LISTENER_VARIABLE: str(listener.fileno())}, (listener.fileno(),)
        try:
            port = mesh.gather(port)
        except GangIncomplete as error:
            sys.stderr.write(f"GangIncomplete: {error}\n")
            return HOST_LOST
        environment = LOOPBACK | {
            STORE_VARIABLE: f"{STORE_OF_HOSTS}{gang.loopback_of(0)}:{port}",
            "DESKHAND_RANK_MESH": str(mesh.socket_path),
            "DESKHAND_RANK_LOOPBACK": own,
        }
        if interface := os.environ.get("DESKHAND_NCCL_INTERFACE"):
            environment["NCCL_SOCKET_IFNAME"] = interface  # of a private network: it is not encrypted
        size = count * len(gang.addresses)
        place = Place(count * gang.host, size, environment, first_only, keeps)
        ranks.append(Ranks(command, count, place))
        code = ranks[0].wait(lambda: _say_lost(gang, mesh.silent_hosts()))
        if code in PLANNED:
            mesh.finish()
        return code


def _say_lost(gang: Gang, hosts: Iterable[int]) -> None:
    for host in hosts:
        name, port = gang.addresses[host]
        sys.stderr.write(f"HostLost: host {host} of the gang, {name}:{port}, does not answer any more\n")


def _lose(ranks: list[Ranks], gang: Gang, host: int) -> None:
    _say_lost(gang, [host])
    for one in ranks:
        one.end(HOST_LOST)


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
        self._ended_with: int | None = None
        signal.signal(signal.SIGTERM, lambda number, _frame: self._send(number))
        for local in range(count):
            rank = place.first + local
            own = {"RANK": str(rank), "LOCAL_RANK": str(local), **(place.first_only if rank == 0 else {})}
            process = subprocess.Popen(
                [*DIE_WITH_LAUNCHER, *command], env=shared | own, pass_fds=place.keeps if rank == 0 else ()
            )
            self._running[process.pid] = rank
            process.returncode = 0  # `wait` reaps every child itself

    def wait(self, on_crash: Callable[[], None] | None = None) -> int:
        """Until all have ended; `on_crash` is called when the first crashed, before the others are ended."""
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
                if code < 0 and self._ended_with is None:
                    _say_signal(rank, -code)
                if on_crash is not None and self._ended_with is None:
                    on_crash()
                self._end_the_others()
        if self._ended_with is not None:
            return self._ended_with
        code = codes[min(codes)] if crash is None else crash
        return code if code >= 0 else 128 - code

    def end(self, code: int) -> None:
        """End them all, from any thread; `wait` then returns `code`."""
        self._ended_with = code
        self._end_the_others()

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
