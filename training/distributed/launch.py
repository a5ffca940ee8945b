"""Starts the ranks of one program on this host.

    python -m training.distributed.launch --ranks N -m MODULE ARGUMENTS

Ranks meet in a file of a private folder, and gloo and NCCL connect over the loopback interface, so nothing
listens on the network. (torchrun's rendezvous does, and unpickles what it reads there.) SIGTERM goes on to
every rank. A rank that crashes ends the others, and its code is the launcher's: 128 + N after signal N.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from training.contracts.trainer_exit import ExitCode

STORE_VARIABLE = "DESKHAND_RANK_STORE"
"""The file in which the ranks meet."""
LOOPBACK = {"GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "lo"}
CRASH_GRACE_S = 5.0
"""Peers of a crashed rank wait in a collective that never ends; nothing of theirs is worth more patience."""
PLANNED = {ExitCode.FINISHED, ExitCode.PAUSED, ExitCode.CANCELLED}
DIE_WITH_LAUNCHER = ("setpriv", "--pdeathsig", "KILL", "--")


def main(arguments: list[str] | None = None) -> int:
    """Start the ranks and wait for them; the exit code of the first that crashed, else of rank 0."""
    parser = argparse.ArgumentParser(
        prog="python -m training.distributed.launch", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--ranks", type=int, required=True, help="processes on this host")
    parser.add_argument("-m", dest="module", required=True, help="the module that every rank runs")
    options, rest = parser.parse_known_args(arguments)
    with tempfile.TemporaryDirectory(prefix="deskhand-ranks-") as folder:
        return Ranks([sys.executable, "-m", options.module, *rest], options.ranks, Path(folder)).wait()


class Ranks:
    """The processes of one run: started together, ended together."""

    def __init__(self, command: list[str], count: int, folder: Path) -> None:
        """Start them. Only the main thread may: the kernel ends them when the thread that started them
        ends."""
        shared = os.environ | LOOPBACK | {"WORLD_SIZE": str(count), STORE_VARIABLE: str(folder / "store")}
        if count > 1:
            shared.setdefault("OMP_NUM_THREADS", "1")
        self._running: dict[int, int] = {}
        """pid -> rank"""
        signal.signal(signal.SIGTERM, lambda number, _frame: self._send(number))
        for rank in range(count):
            ranks = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            process = subprocess.Popen([*DIE_WITH_LAUNCHER, *command], env=shared | ranks)
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
        code = codes[0] if crash is None else crash
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
