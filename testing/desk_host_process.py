"""A desk host of one's own, as a child process: for scripts, benchmarks and tests that need desktops.

An installation's desk host is the supervisor's (`webapp/lib/supervisor`), which starts it again when it dies.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from workers.desktops.contract import EnvError
from workers.desktops.host.client import DeskHostClient

ROOT = Path(__file__).resolve().parents[1]
START_LIMIT_S = 60.0
STOP_LIMIT_S = 300.0
"""Long: emulated machines on a busy host take their time to end."""
LOG_LINES = 12
"""Of the log's end, in the error of a host that did not start."""


class HostFailed(EnvError):
    """Raised when a desk host ended, or stayed silent, at its start; the message has the end of its log."""


def start_host(
    folder: Path, *options: str, without: Iterable[str] | None = None
) -> tuple[subprocess.Popen[bytes], DeskHostClient]:
    """A desk host that answers: state, socket `s` and `host.log` in `folder`, whose path must be short.

    `without`: defences that its X11 desktops lack. Raises HostFailed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    socket, log_path = folder / "s", folder / "host.log"
    program = ["workers.desktops.host"]
    if without is not None:
        program = ["testing.weak_desk_host", f"--without={','.join(without)}"]
    command = [sys.executable, "-m", *program, "--state-dir", str(folder), "--socket", str(socket)]
    with open(log_path, "ab") as log:
        process = subprocess.Popen([*command, *options], cwd=ROOT, stdout=log, stderr=log)
    client = DeskHostClient(socket)
    try:
        _wait_until_it_answers(process, client, log_path)
    except BaseException:  # a signal too: nobody else knows of the process
        stop_host(process)
        raise
    return process, client


def stop_host(process: subprocess.Popen[bytes]) -> int:
    """Its exit code after SIGTERM, as the supervisor sends it."""
    if process.poll() is None:
        process.terminate()
    return process.wait(timeout=STOP_LIMIT_S)


@contextmanager
def running_host(
    folder: Path, *options: str, without: Iterable[str] | None = None
) -> Iterator[DeskHostClient]:
    """`start_host`, stopped at the end."""
    process, client = start_host(folder, *options, without=without)
    try:
        yield client
    finally:
        client.close()
        stop_host(process)


def _wait_until_it_answers(process: subprocess.Popen[bytes], client: DeskHostClient, log: Path) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while True:
        try:
            client.health()
            return
        except EnvError as silence:
            if process.poll() is not None:
                said = f"the desk host ended at its start with exit code {process.returncode}"
                raise HostFailed(f"{said}:\n{_end_of(log)}") from silence
            if time.monotonic() > deadline:
                said = f"the desk host does not answer after {START_LIMIT_S:.0f} s"
                raise HostFailed(f"{said}:\n{_end_of(log)}") from silence
        time.sleep(0.05)


def _end_of(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-LOG_LINES:])
