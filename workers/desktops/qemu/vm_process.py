"""One QEMU process: started under its limits, driven through its monitor, ended with its parent.

started -> connected -> (execute)* -> ended
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import time
from pathlib import Path
from typing import Any

import psutil
from qemu.qmp import ConnectError, EventListener, ExecuteError, QMPClient, QMPError

from workers.desktops.contract import EnvError, Usage
from workers.desktops.qemu.command_line import OVERHEAD_MB
from workers.desktops.qemu.machine_identity import LOG, MONITOR
from workers.processes.cgroups import Cgroups, make_cgroups
from workers.processes.process_group import die_with_parent
from workers.processes.unix_socket import short_path

CONNECT_LIMIT_S = 20.0
CALL_LIMIT_S = 30.0
POLL_S = 0.005
STATE_LIMIT_S = 60.0
NO_LIMIT = 1 << 40
"""Bytes per second; QEMU's own 128 MiB/s is meant for networks."""
# Moves itself into its control groups, then becomes QEMU: no fork, so the parent stays the parent.
LAUNCHER = 'while [ "$1" != -- ]; do echo $$ > "$1" || exit 70; shift; done; shift; ulimit -c 0; exec "$@"'
FORWARD = re.compile(r"TCP\[HOST_FORWARD\]\s+\d+\s+127\.0\.0\.1\s+(\d+)")
MAX_THREADS = 64


class VmProcess:
    """A running machine in a folder of its own. Made by `VmProcess.start`."""

    def __init__(self, folder: Path, process: asyncio.subprocess.Process, cgroups: Cgroups) -> None:
        self.folder = folder
        self.pid = process.pid
        self._process = process
        self._cgroups = cgroups
        self._monitor = QMPClient(f"vm-{process.pid}")
        self._disk_errors = EventListener("BLOCK_IO_ERROR")
        self._monitor.register_listener(self._disk_errors)
        self._lock = asyncio.Lock()

    @classmethod
    async def start(cls, folder: Path, argv: list[str], name: str, memory_mb: int) -> VmProcess:
        """Start in `folder` and connect. Call it from the main thread: the machine dies with the thread."""
        # Not in a thread, which would go on and make them after a time limit has ended this start.
        cgroups = make_cgroups(
            f"{os.getpid()}-{name}", memory_mb=memory_mb + OVERHEAD_MB, max_processes=MAX_THREADS
        )
        try:
            process = await _spawn(folder, argv, cgroups)
        except BaseException:
            await asyncio.to_thread(cgroups.remove)
            raise
        vm = cls(folder, process, cgroups)
        try:
            await vm._connect()
        except BaseException:
            await vm.end()
            raise
        return vm

    @property
    def cgroups(self) -> list[str]:
        return [str(folder) for folder in self._cgroups.folders.values()]

    @property
    def cpu_account(self) -> str:
        return self._cgroups.cpu_account

    async def _connect(self) -> None:
        deadline = time.monotonic() + CONNECT_LIMIT_S
        path = self.folder / MONITOR
        while not path.exists() and not self.has_ended and time.monotonic() < deadline:
            await asyncio.sleep(POLL_S)
        while True:
            try:
                with short_path(str(path)) as address:
                    async with asyncio.timeout(CONNECT_LIMIT_S):
                        await self._monitor.connect(address)
                return
            except (ConnectError, OSError, TimeoutError) as exc:
                await self._monitor.disconnect()
                if self._process.returncode is not None:
                    raise EnvError(f"QEMU did not start. {self.last_words()}") from exc
                if time.monotonic() > deadline:
                    raise EnvError(f"QEMU's monitor does not answer. {self.last_words()}") from exc
            await asyncio.sleep(POLL_S)

    async def execute(self, command: str, arguments: dict[str, Any] | None = None) -> Any:
        """One monitor command. Raises EnvError, with QEMU's words."""
        try:
            async with self._lock:
                async with asyncio.timeout(CALL_LIMIT_S):
                    return await self._monitor.execute(command, arguments)  # type: ignore[arg-type]
        except ExecuteError as exc:
            raise EnvError(f"QEMU refused {command}: {exc}") from exc
        except (QMPError, OSError, TimeoutError) as exc:
            raise EnvError(f"QEMU does not answer {command} ({exc!r}). {self.last_words()}") from exc

    async def is_alive(self, limit_s: float) -> bool:
        """Whether the monitor answers within the limit."""
        try:
            async with asyncio.timeout(limit_s):
                await self.execute("query-status")
        except (EnvError, TimeoutError):
            return False
        return True

    async def agent_port(self) -> int:
        """The loopback port that leads to the agent in the guest."""
        text = await self.execute("human-monitor-command", {"command-line": "info usernet"})
        found = FORWARD.search(text)
        if found is None:
            raise EnvError("QEMU forwards no port to the guest's agent", permanent=True)
        return int(found[1])

    async def screenshot(self, path: Path) -> None:
        """Write the screen as PPM (or PNG by its suffix)."""
        kind = "png" if path.suffix == ".png" else "ppm"
        await self.execute("screendump", {"filename": str(path), "format": kind})

    async def save(self, state: Path) -> None:
        """Stop the machine and write all but its shared memory to `state`."""
        await self.execute("stop")
        await self._ignore_shared()
        await self.execute("migrate-set-parameters", {"max-bandwidth": NO_LIMIT})
        await self._hand_over(state, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        await self.execute("migrate", {"uri": "fd:state"})
        await self._migrated()

    async def restore(self, state: Path) -> None:
        """Bring a machine that was started with `incoming` to a saved state; it stays stopped."""
        await self._ignore_shared()
        await self._hand_over(state, os.O_RDONLY)
        await self.execute("migrate-incoming", {"uri": "fd:state"})
        await self._migrated()

    async def _ignore_shared(self) -> None:
        capability = {"capability": "x-ignore-shared", "state": True}
        await self.execute("migrate-set-capabilities", {"capabilities": [capability]})

    async def _hand_over(self, path: Path, flags: int) -> None:
        """Give QEMU an open file under the name `state`: its sandbox may not start a program to read it."""
        descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
        try:
            self._monitor.send_fd_scm(descriptor)
            await self.execute("getfd", {"fdname": "state"})
        finally:
            os.close(descriptor)

    async def _migrated(self) -> None:
        deadline = time.monotonic() + STATE_LIMIT_S
        while True:
            answer = await self.execute("query-migrate")
            status = answer.get("status")
            if status == "completed":
                return
            if status in ("failed", "cancelled"):
                raise EnvError(f"the snapshot {status}: {answer.get('error-desc', '')}. {self.last_words()}")
            if time.monotonic() > deadline:
                raise EnvError(f"the snapshot is not done after {STATE_LIMIT_S:g} s (status {status})")
            await asyncio.sleep(POLL_S)

    # -- end --------------------------------------------------------------------------------

    @property
    def has_ended(self) -> bool:
        return self._process.returncode is not None

    async def wait_dead(self) -> str:
        """Why it ended, once it has; one that QEMU stopped because its disk failed is ended here."""
        ended = asyncio.ensure_future(self._process.wait())
        stopped = asyncio.ensure_future(self._stopped_by_disk())
        try:
            await asyncio.wait((ended, stopped), return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                return f"QEMU ended with code {ended.result()}. {self.last_words()}"
            self._process.kill()
            return f"the host could not write the machine's disk ({stopped.result()}); QEMU stopped it"
        finally:
            ended.cancel()
            stopped.cancel()

    async def _stopped_by_disk(self) -> str:
        """QEMU's word for it. A stopped machine still shows its last picture and would never act again."""
        while True:
            event: Any = await self._disk_errors.get()
            if event["data"]["action"] == "stop":
                return str(event["data"].get("reason", "no reason given"))

    async def end(self) -> None:
        """Kill it and remove its control groups; its folder stays. Idempotent."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        with contextlib.suppress(QMPError, OSError, EOFError):
            await self._monitor.disconnect()
        await asyncio.to_thread(self._cgroups.remove)

    def last_words(self, lines: int = 6) -> str:
        """The end of QEMU's own log and of the guest's serial console, one line."""
        found = [line for name in ("qemu.log", LOG) for line in tail(self.folder / name, lines)]
        return "Log: " + " | ".join(found) if found else "No log."

    # -- resources --------------------------------------------------------------------------

    def usage(self) -> Usage:
        if self.has_ended:
            return Usage()
        usage = Usage()
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(self.pid)
            times = process.cpu_times()
            usage.cpu_s = round(times.user + times.system, 3)
            usage.rss_mb = round(process.memory_info().rss / (1 << 20), 1)
            usage.processes = 1
        return usage

    def private_mb(self) -> float:
        """Memory that no other machine shares, MiB."""
        with contextlib.suppress(psutil.Error):
            return psutil.Process(self.pid).memory_full_info().uss / (1 << 20)
        return 0.0


async def _spawn(folder: Path, argv: list[str], cgroups: Cgroups) -> asyncio.subprocess.Process:
    # The folder's name stands on the command line so that a process can be traced to its desktop.
    command = die_with_parent([*argv, "-name", f"{folder}/"], "KILL")
    with open(folder / "qemu.log", "ab") as log:
        return await asyncio.create_subprocess_exec(
            *["/bin/sh", "-c", LAUNCHER, "desk", *cgroups.procs_files, "--", *command],
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,
            env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C.UTF-8", **_mark()},
            start_new_session=True,
        )


def tail(path: Path, lines: int) -> list[str]:
    """The last non-empty lines of a text file; none when there is no file."""
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return []
    return [line.strip() for line in text.splitlines() if line.strip()][-lines:]


def _mark() -> dict[str, str]:
    """The mark by which a supervisor finds its descendants."""
    return {name: os.environ[name] for name in ("DESKHAND_CHILD",) if name in os.environ}
