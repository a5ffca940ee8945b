"""Runs a table of processes: starts them, waits until they are ready, restarts them, stops them all."""

import asyncio
import itertools
import os
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from webapp.lib.supervisor.logs import ProcessLog, Terminal
from webapp.lib.supervisor.orphans import become_subreaper, reap, sweep
from webapp.lib.supervisor.supervised_process import ProcessSpec, SupervisedProcess

START_TIMEOUT_S = 120
MAX_FIRST_STARTS = 3
READY_INTERVAL_S = 0.05
REAP_INTERVAL_S = 1.0


class StartFailed(Exception):
    """Raised when a process did not become ready; the message holds the end of its log."""


class Supervisor:
    """The parent of all processes of one installation."""

    def __init__(self, data_dir: Path, log_dir: Path, terminal: Terminal) -> None:
        self.data_dir = data_dir
        self.log_dir = log_dir
        self.terminal = terminal
        self.children: list[SupervisedProcess] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.asked_to_stop = asyncio.Event()

    def say(self, text: str) -> None:
        self.terminal.write("up", text)

    async def run(self, steps: Sequence[Callable[[], Awaitable[None]]]) -> None:
        """Take step after step (starting processes, asking them), then watch until a signal; stop everything.

        Raises StartFailed when a process does not come up.
        """
        become_subreaper()
        self.listen_for_signals()
        reaper = asyncio.create_task(self.reap_for_ever())
        try:
            for step in steps:
                await self.until_stop(step())
                if self.asked_to_stop.is_set():
                    return
            await self.asked_to_stop.wait()
        finally:
            await self.stop()
            reaper.cancel()

    def listen_for_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.on_signal)

    def on_signal(self) -> None:
        """The first signal asks everything to stop, a second one kills."""
        if not self.asked_to_stop.is_set():
            self.terminal.show_children = False
            self.say("stopping (once more to kill)")
            self.asked_to_stop.set()
            return
        for child in self.children:
            child.kill()

    async def start(self, specs: list[ProcessSpec]) -> None:
        """Start processes side by side and wait until all of them are ready. Raises StartFailed."""
        started = time.monotonic()
        new = [self.add(spec) for spec in specs]
        await asyncio.gather(*(self.first_ready(child, started) for child in new))

    def add(self, spec: ProcessSpec) -> SupervisedProcess:
        log = ProcessLog(self.log_dir, spec.name, self.terminal.writer(spec.name))
        child = SupervisedProcess(spec, log, self.say)
        self.children.append(child)
        self.tasks.append(asyncio.create_task(child.keep_running()))
        return child

    async def first_ready(self, child: SupervisedProcess, started: float) -> None:
        while not child.was_ready.is_set():
            if time.monotonic() - started > START_TIMEOUT_S or child.num_starts > MAX_FIRST_STARTS:
                log = "\n  ".join(child.log.tail())
                raise StartFailed(f"{child.spec.name} does not start. The end of {child.log.path}:\n  {log}")
            await asyncio.sleep(READY_INTERVAL_S)
        self.say(f"{child.spec.name} is ready ({time.monotonic() - started:.1f} s)")

    async def until_stop(self, work: Awaitable[object]) -> None:
        """Await `work`, but only until a signal asks us to stop."""
        working = asyncio.ensure_future(work)
        stop = asyncio.create_task(self.asked_to_stop.wait())
        await asyncio.wait({working, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if working.done():
            working.result()
        else:
            working.cancel()

    async def stop(self) -> None:
        """Stop wave by wave, then end whatever still carries our mark. Idempotent."""
        for child in self.children:
            child.stopping.set()  # nothing is started again from here on
        by_wave = sorted(self.children, key=lambda child: child.spec.stop_wave)
        for _, wave in itertools.groupby(by_wave, key=lambda child: child.spec.stop_wave):
            await asyncio.gather(*(child.stop() for child in wave))
        if self.tasks:
            await asyncio.wait(self.tasks)
        left = sweep(self.data_dir)
        if left:
            self.say(f"killed {left} processes that were left behind")
        for child in self.children:
            child.log.close()

    async def reap_for_ever(self) -> None:
        while True:
            reap({child.process.pid for child in self.children if child.process} | {os.getpid()})
            await asyncio.sleep(REAP_INTERVAL_S)
