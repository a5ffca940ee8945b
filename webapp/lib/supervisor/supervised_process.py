"""One supervised process: what to run, when it counts as ready, and how it is stopped.

STARTING -> READY -> EXITED -> STARTING ...     any of these -> STOPPED
"""

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import IO

from webapp.lib.supervisor.logs import ProcessLog
from webapp.lib.supervisor.orphans import MARKER, kill_marked

DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "TERM", "--")
"""The kernel ends the command when the supervisor dies."""
PROBE_INTERVAL_S = 0.05
STABLE_AFTER_S = 30
"""A process that lived this long starts again with the shortest delay."""
FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 20.0
PIPE_LIMIT_BYTES = 1 << 20
LAST_OUTPUT_S = 2.0
"""How long to wait for the end of the output of a process that has ended."""

Probe = Callable[[], Awaitable[bool]]


class ProcessState(StrEnum):
    STARTING = "starting"
    READY = "ready"
    EXITED = "exited"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSpec:
    """What the supervisor has to know about a process."""

    name: str
    argv: list[str]
    env: dict[str, str]
    cwd: Path
    probe: Probe | None = None
    """Asked again and again after a start until it says True."""
    ready_line: str | None = None
    """Or: a regular expression; the first line of output that matches it means ready."""
    stop_wave: int = 0
    """Processes are stopped wave by wave: those that use others first."""
    grace_s: float = 6.0
    """Seconds between SIGTERM and SIGKILL."""


@dataclass(slots=True)
class SupervisedProcess:
    """A running (or restarting) process of a spec."""

    spec: ProcessSpec
    log: ProcessLog
    say: Callable[[str], None]
    """Shows a line of the supervisor's own."""
    state: ProcessState = ProcessState.STARTING
    num_starts: int = 0
    was_ready: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the first start has become ready; stays set over restarts."""
    process: subprocess.Popen[bytes] | None = None
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    async def keep_running(self) -> None:
        """Start the process, and start it again whenever it exits, until `stop` is called."""
        delay_s = FIRST_DELAY_S
        while not self.stopping.is_set():
            started = time.monotonic()
            status = await self.run_once()
            if self.stopping.is_set():
                break
            self.state = ProcessState.EXITED
            if time.monotonic() - started > STABLE_AFTER_S:
                delay_s = FIRST_DELAY_S
            self.say(f"{self.spec.name} {describe_exit(status)}; starting it again in {delay_s:.1f} s")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay_s):
                    await self.stopping.wait()
            delay_s = min(delay_s * 2, LONGEST_DELAY_S)
        self.state = ProcessState.STOPPED

    async def run_once(self) -> int:
        """One life of the process; returns its exit status once nothing of it is left."""
        self.num_starts += 1
        self.state = ProcessState.STARTING
        mark = f"{self.spec.env['DESKHAND_DATA_DIR']}|{self.spec.name}|{os.getpid()}.{self.num_starts}"
        self.process = subprocess.Popen(
            [*DIE_WITH_PARENT, *self.spec.argv],
            env={**self.spec.env, MARKER: mark},
            cwd=self.spec.cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        reader = asyncio.create_task(self.read_output(self.process.stdout))
        prober = asyncio.create_task(self.wait_ready()) if self.spec.probe else None
        try:
            await exit_of(self.process.pid)
        finally:
            if prober:
                prober.cancel()
            # What it started is of no use without it, and would collide with what its next life starts.
            kill_marked(lambda other: other == mark)
            await asyncio.wait({reader}, timeout=LAST_OUTPUT_S)
            reader.cancel()
        return self.process.wait()

    async def read_output(self, pipe: IO[bytes] | None) -> None:
        assert pipe is not None
        stream = asyncio.StreamReader(limit=PIPE_LIMIT_BYTES)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stream), pipe)
        try:
            await self.log_lines(stream)
        finally:
            transport.close()

    async def log_lines(self, stream: asyncio.StreamReader) -> None:
        """Log every line until the end of the stream; one of them may mean that we are ready."""
        pattern = re.compile(self.spec.ready_line) if self.spec.ready_line else None
        while True:
            try:
                line = await stream.readline()
            except ValueError:  # a line above PIPE_LIMIT_BYTES; the stream has dropped it
                continue
            if not line:
                return
            text = line.decode(errors="replace").rstrip()
            self.log.write(text)
            if pattern and self.state is ProcessState.STARTING and pattern.search(text):
                self.mark_ready()

    async def wait_ready(self) -> None:
        assert self.spec.probe is not None
        while not await self.spec.probe():
            await asyncio.sleep(PROBE_INTERVAL_S)
        self.mark_ready()

    def mark_ready(self) -> None:
        self.state = ProcessState.READY
        self.was_ready.set()

    async def stop(self) -> None:
        """SIGTERM, and after the grace period SIGKILL to the whole group. Idempotent."""
        self.stopping.set()
        if self.process is None or self.process.returncode is not None:
            return
        # To the process alone: it decides about its children.
        self.process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(self.spec.grace_s):
                await exit_of(self.process.pid)
        except TimeoutError:
            self.say(f"{self.spec.name} ignores SIGTERM; killing it")
            self.kill()
            await exit_of(self.process.pid)

    def kill(self) -> None:
        """SIGKILL to its process group; what left the group is found by its mark."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)


async def exit_of(pid: int) -> None:
    """Return when our child process has ended.

    asyncio's own wait also waits for the end of its output, which anything it started may hold open.
    """
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:  # it ended and has been collected
        return
    loop.add_reader(handle, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)


def describe_exit(status: int) -> str:
    """Words for a return code as `subprocess` gives it."""
    if status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    return f"exited with status {status}"
