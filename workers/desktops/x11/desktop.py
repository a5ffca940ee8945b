"""One X11 desktop: its processes and sandbox, how it starts, is cleaned in place, and ends."""

import asyncio
import contextlib
import json
import os
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from workers.desktops.agent_client import AgentClient
from workers.desktops.contract import DesktopSpec, Endpoints, EnvError, NotClean, ResetReport, Usage
from workers.desktops.x11 import sandbox
from workers.desktops.x11.display_connection import X11Display
from workers.desktops.x11.display_reset import Baseline, restore, take_baseline
from workers.desktops.x11.leftover_processes import descendants, require_no_surplus
from workers.desktops.x11.syscall_filter import call_filter
from workers.desktops.x11.system_root import OWN
from workers.processes.cgroups import Cgroups, make_cgroups, usable_controllers

START_LIMIT_S = 30.0
RESET_LIMIT_S = 8.0
OUTER_PROCESSES = 96
"""Room for X server, agent and commands of evaluators, whatever the programs take."""
SYSTEM_PYTHON = "/usr/bin/python3"


@dataclass
class X11Desktop:
    folder: Path
    spec: DesktopSpec
    is_sandboxed: bool
    root: Path = OWN
    """The system that its programs come from."""
    weakened: frozenset[str] = frozenset()
    """Defences left out, by tests only: namespaces, filter, reading, judging, limits, files, network,
    display."""
    pid: int = 0
    endpoints: Endpoints = field(default_factory=Endpoints)
    _process: asyncio.subprocess.Process | None = None
    _cgroups: Cgroups = field(default_factory=lambda: Cgroups({}))
    _x: X11Display | None = None
    _baseline: Baseline | None = None

    @property
    def memory_limit_mb(self) -> float:
        return self.spec.memory_mb

    @property
    def cgroups(self) -> list[str]:
        return [str(folder) for folder in self._cgroups.folders.values()]

    # -- life -------------------------------------------------------------------------------

    async def start(self, desktop_id: str) -> None:
        """Spawn from the caller's thread: the desktop dies with that thread."""
        self._write_files()
        self._cgroups = make_cgroups(
            f"{os.getpid()}-{desktop_id}",
            memory_mb=self.spec.memory_mb,
            max_processes=self.spec.max_processes + OUTER_PROCESSES,
        )
        with open(self.folder / "log", "ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *sandbox.launcher_argv(self._cgroups, self.spec, self._command()),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=outer_environment(),
                cwd=None if self.is_sandboxed else str(sandbox.GUEST.parent.parent),
                start_new_session=True,
            )
        self.pid = self._process.pid
        ready = await self._wait_ready()
        run_dir = self.folder / "run"
        number = str(ready["display"]).lstrip(":")
        shown = self.folder / "x" if self.is_sandboxed else Path("/tmp/.X11-unix")
        vnc = run_dir / "vnc.sock"
        self.endpoints = Endpoints(
            console="x11",
            display=str(shown / f"X{number}"),
            agent=str(run_dir / "agent.sock"),
            vnc=str(vnc) if vnc.exists() else "",
            cpu_account=self._cgroups.cpu_account,
            home=sandbox.HOME if self.is_sandboxed else str(self.folder / "home"),
        )
        async with asyncio.timeout(START_LIMIT_S):
            await asyncio.to_thread(self._open_display)

    def _write_files(self) -> None:
        inside = self.is_sandboxed
        folder = self.folder
        guest = f"{sandbox.PROGRAM_ROOT}/workers/guest" if inside else str(sandbox.GUEST)
        layout = {
            "home": sandbox.HOME if inside else str(folder / "home"),
            "tmp": "/tmp" if inside else str(folder / "tmp"),
            "runtime_dir": sandbox.RUNTIME_DIR if inside else str(folder / "xdg"),
            "run_dir": sandbox.RUN_DIR if inside else str(folder / "run"),
            "skeleton": f"{guest}/skeleton",
            "wm_config": f"{guest}/openbox.xml",
            "width": self.spec.width,
            "height": self.spec.height,
            "display": 0 if inside else None,
            "accessibility": self.spec.accessibility,
            "weakened": sorted(self.weakened),
        }
        if inside:
            without = self.weakened
            layout |= {
                "space_mb": 0 if "namespaces" in without else self.spec.home_mb,
                "max_processes": 4096 if "limits" in without else self.spec.max_processes,
                "bwrap": sandbox.INNER_BWRAP if self.root == OWN else "/usr/bin/bwrap",
                "call_filter": sandbox.CALL_FILTER,
            }
            counts_memory = "memory" in usable_controllers()
            program = b"" if "filter" in without else call_filter(counts_memory=counts_memory)
            (folder / "calls").write_bytes(program)
            (folder / "x").mkdir()
        if not inside:
            for name in ("home", "tmp", "xdg"):
                (folder / name).mkdir(mode=0o700)
        (folder / "layout.json").write_text(json.dumps(layout))
        sandbox.write_identity(folder)

    def _command(self) -> list[str]:
        agent = [SYSTEM_PYTHON, "-s", "-E", "-B", "-m", "workers.guest.agent"]
        if self.is_sandboxed:
            return [
                *sandbox.sandbox_argv(self.folder, self.spec, self.root, self.weakened),
                *agent,
                f"{sandbox.PROGRAM_ROOT}/layout.json",
            ]
        return [*agent, str(self.folder / "layout.json")]

    async def _wait_ready(self) -> dict:
        assert self._process is not None
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(START_LIMIT_S):
                line = await self._process.stdout.readline()
        except TimeoutError as exc:
            raise EnvError(
                f"the desktop was not ready after {START_LIMIT_S:g} s. {self.last_words()}"
            ) from exc
        answer = json.loads(line) if line else {"ready": False, "message": "it ended while starting"}
        if not answer["ready"]:
            raise EnvError(f"the desktop did not start: {answer['message']}. {self.last_words()}")
        return answer

    def _open_display(self) -> None:
        self._x = X11Display(self.endpoints.display)
        self._baseline = take_baseline(self._x, self.spec.background)

    async def wait_dead(self) -> str:
        assert self._process is not None
        code = await self._process.wait()
        return f"it ended with code {code}. {self.last_words()}"

    def last_words(self, lines: int = 6) -> str:
        """The end of the desktop's log, one line."""
        text = self.console_log(lines)
        return "Log: " + " | ".join(map(str.strip, text.splitlines())) if text else "No log."

    def console_log(self, lines: int) -> str:
        """The end of the desktop's log."""
        try:
            text = (self.folder / "log").read_text(errors="replace")
        except FileNotFoundError:
            return ""
        return "\n".join([line for line in text.splitlines() if line.strip()][-lines:])

    async def destroy(self) -> None:
        if self._process is not None:
            await self._end_processes(self._process)
        if self._x is not None:
            self._x.close()  # after the server's end, so that a frozen one cannot hold us up
            self._x = None
        await asyncio.to_thread(self._cgroups.remove)
        shutil.rmtree(self.folder, ignore_errors=True)

    async def _end_processes(self, process: asyncio.subprocess.Process) -> None:
        """In a sandbox one kill ends all; plain processes are ended one by one, parents first."""
        family: list[psutil.Process] = []
        if not self.is_sandboxed:
            with contextlib.suppress(psutil.NoSuchProcess):
                # Not by `_family`: what forks or ends meanwhile may hide others from the kernel's lists.
                family = psutil.Process(process.pid).children(recursive=True)
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        for member in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.kill()
        await process.wait()

    # -- reset ------------------------------------------------------------------------------

    async def reset(self) -> ResetReport:
        started = time.monotonic()
        try:
            async with asyncio.timeout(RESET_LIMIT_S):
                report = await asyncio.to_thread(self._clean)
        except TimeoutError as exc:
            raise NotClean(f"the reset took longer than {RESET_LIMIT_S:g} s") from exc
        report.wall_s = time.monotonic() - started
        return report

    def _clean(self) -> ResetReport:
        """Inside first (processes and files), then the display. Runs on a thread; spawns nothing."""
        assert self._x is not None
        assert self._baseline is not None
        with AgentClient(self.endpoints.agent, timeout_s=RESET_LIMIT_S) as agent:
            done = agent.reset()
        if "display" not in self.weakened:
            restore(self._x, self._baseline, self.endpoints.vnc)
        if self.is_sandboxed:
            require_no_surplus(self.pid, with_accessibility=self.spec.accessibility)
        return ResetReport(killed=done["killed"], removed=done["removed"])

    # -- resources --------------------------------------------------------------------------

    def usage(self) -> Usage:
        if self._process is None or self._process.returncode is not None:
            return Usage()
        usage = Usage()
        for process in _family(self.pid):
            with contextlib.suppress(psutil.Error), process.oneshot():
                usage.rss_mb += process.memory_info().rss / (1 << 20)
                times = process.cpu_times()
                usage.cpu_s += times.user + times.system
                usage.processes += 1
        total = self._cgroups.cpu_s()
        usage.cpu_s = round(usage.cpu_s if total is None else total, 3)
        usage.rss_mb = round(usage.rss_mb, 1)
        return usage

    def private_mb(self) -> float:
        total = 0
        for process in _family(self.pid):
            with contextlib.suppress(psutil.Error):
                total += process.memory_full_info().pss
        return total / (1 << 20)


def outer_environment() -> dict[str, str]:
    """Nothing of the host's environment but the mark by which a supervisor finds its descendants."""
    kept = {name: os.environ[name] for name in ("DESKHAND_CHILD",) if name in os.environ}
    return {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C.UTF-8", **kept}


def _family(pid: int) -> list[psutil.Process]:
    """It and its descendants, parents first."""
    found = []
    for member in (pid, *descendants(pid)):
        with contextlib.suppress(psutil.NoSuchProcess):
            found.append(psutil.Process(member))
    return found
