"""A real QEMU guest agent as a process of this machine, and one that misbehaves."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from workers.desktops.windows.qemu_guest_agent_client import GuestAgentClient

HARMLESS_HERE = (
    "guest-shutdown,guest-suspend-disk,guest-suspend-ram,guest-suspend-hybrid,guest-set-time,guest-fsfreeze-freeze,"
    "guest-set-user-password,guest-set-vcpus,guest-fstrim"
)
"""Commands that the agent must not have on a machine that is no guest."""


def agent_program() -> str:
    """Path of qemu-ga."""
    found = shutil.which("qemu-ga", path="/usr/sbin:/usr/local/sbin:/usr/bin")
    assert found, "qemu-ga is missing: apt-get install qemu-guest-agent (requirements/system-test.txt)"
    return found


@contextmanager
def running_agent(folder: Path) -> Iterator[Path]:
    """The socket of an agent that answers."""
    path = folder / "agent.sock"
    # fmt: off
    command = [
        agent_program(), "-m", "unix-listen", "-p", str(path), "-t", str(folder),
        "-f", str(folder / "agent.pid"), "-b", HARMLESS_HERE,
    ]
    # fmt: on
    with (folder / "agent.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 60
        while not path.exists():
            assert process.poll() is None, (folder / "agent.log").read_text()
            assert time.monotonic() < deadline, "the agent does not listen"
            time.sleep(0.02)
        with GuestAgentClient(str(path)) as client:
            assert client.ping(timeout_s=30)
        yield path
    finally:
        process.kill()  # a SIGTERM that meets it between two turns of its loop is lost
        process.wait()


@contextmanager
def scripted_agent(path: Path, answer: Callable[[dict], bytes]) -> Iterator[list[dict]]:
    """An agent on a socket whose every line of answer is `answer(request)`; yields the requests it got."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()
    requests: list[dict] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as lines:
                for line in lines:
                    request = json.loads(line.lstrip(b"\xff"))
                    requests.append(request)
                    try:
                        connection.sendall(answer(request))
                    except OSError:
                        break

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield requests
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join(10)
