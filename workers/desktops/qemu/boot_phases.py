"""From power on to a screen at rest: one function per phase, each with a limit and retries of its own.

    creating -> booting -> agent_up -> logged_in -> ready
A phase that runs out of time starts the machine again as often as its rule allows; then BootFailed tells
how far it came and keeps the console log and the last picture.
"""

import asyncio
import contextlib
import hashlib
import json
import shutil
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from workers.desktops.agent_client import AgentClient
from workers.desktops.contract import BootFailed, BootPhase, EnvError
from workers.desktops.qemu.machine_identity import LOG
from workers.desktops.qemu.vm_process import VmProcess, tail


@dataclass(frozen=True)
class PhaseLimit:
    """How long a phase may take and how often the machine is started again when it did not get on."""

    limit_s: float
    retries: int


PHASE_LIMITS = {
    BootPhase.CREATING: PhaseLimit(30.0, 1),
    BootPhase.BOOTING: PhaseLimit(420.0, 1),
    BootPhase.AGENT_UP: PhaseLimit(120.0, 1),
    BootPhase.LOGGED_IN: PhaseLimit(300.0, 1),
}
"""Emulated machines boot in 20 to 50 s, several times longer on a busy host."""
ANSWER_LIMIT_S = 5.0
POLL_S = 0.25
AT_REST_S = 1.5
AT_REST_WITHOUT_AGENT_S = 6.0
"""A boot loader's pauses are shorter."""
PARKED_POINTER = [{"type": "abs", "data": {"axis": axis, "value": 0x7F80}} for axis in ("x", "y")]
"""Lower right corner, where it covers nothing."""
MOST_BUSY = 0.3
"""Share of the guest's time that our own questions may take."""
LOG_LINES = 40
KEPT_FAILURES = 20


def display_wait_s(accelerator: str) -> float:
    """An emulated display answers as late as its boot was slow: it may take as long as that may."""
    return PHASE_LIMITS[BootPhase.AGENT_UP].limit_s if accelerator == "tcg" else 0.0


@dataclass
class Progress:
    """Where a start stands; read by the fleet page while it runs."""

    phase: BootPhase = BootPhase.CREATING
    attempt: int = 1
    what: str = ""
    """What is started, when it is not the desktop itself."""
    since: float = field(default_factory=time.monotonic)
    spent_s: dict[str, float] = field(default_factory=dict)
    """Seconds per phase of the last attempt."""

    def enter(self, phase: BootPhase) -> None:
        now = time.monotonic()
        if phase is not self.phase:
            self.spent_s[self.phase] = round(now - self.since, 3)
        self.phase, self.since = phase, now

    def __str__(self) -> str:
        what = f"{self.what}: " if self.what else ""
        again = f", attempt {self.attempt}" if self.attempt > 1 else ""
        return f"{what}{self.phase}, {time.monotonic() - self.since:.0f} s{again}"


@dataclass
class Machine:
    """A running machine and the way to its agent."""

    vm: VmProcess
    agent: str
    """HOST:PORT; "" without an agent."""


Start = Callable[[], Awaitable[Machine]]
WaitUntilReady = Callable[[Machine, Progress], Awaitable[None]]
"""Waits until a started machine is ready, entering its phases. Raises TimeoutError, EnvError."""


async def boot(start: Start, wait_until_ready: WaitUntilReady, progress: Progress, failures: Path) -> Machine:
    """Start a machine and wait until it is ready. Raises BootFailed; nothing runs then."""
    tries = dict.fromkeys(PHASE_LIMITS, 0)
    while True:
        machine: Machine | None = None
        progress.enter(BootPhase.CREATING)
        try:
            async with asyncio.timeout(PHASE_LIMITS[BootPhase.CREATING].limit_s):
                machine = await start()
            await wait_until_ready(machine, progress)
            progress.enter(BootPhase.READY)
            return machine
        except (EnvError, TimeoutError) as exc:
            phase = progress.phase
            failure = await _failure(machine, phase, exc, failures)
            failure.permanent = permanent = isinstance(exc, EnvError) and exc.permanent
            tries[phase] += 1
            if permanent or tries[phase] > PHASE_LIMITS[phase].retries:
                raise failure from exc
            progress.attempt += 1
        except BaseException:
            if machine is not None:
                await machine.vm.end()
            raise


async def wait_until_ready(machine: Machine, screen: tuple[int, int], progress: Progress) -> None:
    """The phases of a guest with our agent, or with none."""
    progress.enter(BootPhase.BOOTING)
    if machine.agent:
        await poll_until(BootPhase.BOOTING, machine, _agent_answers)
        progress.enter(BootPhase.AGENT_UP)

        async def session(machine: Machine) -> bool:
            return await _session_stands(machine, screen)

        await poll_until(BootPhase.AGENT_UP, machine, session)
    progress.enter(BootPhase.LOGGED_IN)
    await machine.vm.execute("input-send-event", {"events": PARKED_POINTER})
    await wait_until_screen_rests(machine)


async def poll_until(phase: BootPhase, machine: Machine, check: Callable[[Machine], Awaitable[bool]]) -> None:
    """Ask again and again until the check holds. Raises TimeoutError, or EnvError when the machine ended."""
    async with asyncio.timeout(PHASE_LIMITS[phase].limit_s):
        while not await check(machine):
            if machine.vm.has_ended:
                raise EnvError(await machine.vm.wait_dead())
            await asyncio.sleep(POLL_S)


async def _agent_answers(machine: Machine) -> bool:
    try:
        status, _ = await asyncio.to_thread(ask_agent, machine.agent, "GET", "/health")
    except EnvError:
        return False  # still booting
    return status in (200, 404)  # OSWorld's own server has no such page


async def _session_stands(machine: Machine, screen: tuple[int, int]) -> bool:
    """The agent can see the display. Raises EnvError when that has another size than was asked for."""
    try:
        status, raw = await asyncio.to_thread(ask_agent, machine.agent, "POST", "/screen_size")
    except EnvError:
        return False
    if status != 200:
        return False
    answer = json.loads(raw)
    found = int(answer["width"]), int(answer["height"])
    if found != screen:
        message = (
            f"the guest's screen is {found[0]} x {found[1]} pixels, wanted were {screen[0]} x {screen[1]}"
        )
        raise EnvError(f"{message}; does the image follow the display's EDID?", permanent=True)
    return True


def ask_agent(address: str, method: str, path: str, timeout_s: float = ANSWER_LIMIT_S) -> tuple[int, bytes]:
    """One request on a connection of its own: a snapshot must not hold an open one."""
    with AgentClient(address, timeout_s=timeout_s) as agent:
        return agent.call(method, path, b"{}" if method == "POST" else b"")


async def wait_until_screen_rests(machine: Machine) -> None:
    """Until for a while nothing was drawn and, where an agent can tell, nothing was computed."""
    rest_s = AT_REST_S if machine.agent else AT_REST_WITHOUT_AGENT_S
    seen, since, work = "", time.monotonic(), await _cpu_ticks(machine)

    async def rests(machine: Machine) -> bool:
        nonlocal seen, since, work
        now = await screen_digest(machine.vm)
        if now != seen:
            seen, since, work = now, time.monotonic(), await _cpu_ticks(machine)
        if time.monotonic() - since < rest_s:
            return False
        before, work = work, await _cpu_ticks(machine)
        since = time.monotonic()
        return work.busy - before.busy <= MOST_BUSY * max(1, work.all - before.all)

    await poll_until(BootPhase.LOGGED_IN, machine, rests)


@dataclass(frozen=True)
class CpuTicks:
    """Clock ticks since boot as the guest counts them: those in which it computed, and all."""

    busy: int = 0
    all: int = 0


async def _cpu_ticks(machine: Machine) -> CpuTicks:
    """The guest's own account: on a starved host its programs look idle from outside while they work."""
    if not machine.agent:
        return CpuTicks()

    def ask() -> str:
        with AgentClient(machine.agent, timeout_s=PHASE_LIMITS[BootPhase.LOGGED_IN].limit_s) as agent:
            return agent.execute(["cat", "/proc/stat"]).output

    ticks = [int(word) for word in (await asyncio.to_thread(ask)).splitlines()[0].split()[1:]]
    user, nice, system, idle, waiting = ticks[:5]
    return CpuTicks(busy=user + nice + system, all=user + nice + system + idle + waiting)


async def screen_digest(vm: VmProcess) -> str:
    """Fingerprint of the screen now."""
    path = vm.folder / "look.ppm"
    await vm.screenshot(path)
    digest = hashlib.sha1(path.read_bytes(), usedforsecurity=False).hexdigest()
    path.unlink()
    return digest


async def _failure(machine: Machine | None, phase: BootPhase, exc: Exception, failures: Path) -> BootFailed:
    """What a person needs to see why; ends the machine."""
    reason = str(exc) or f"no progress in {PHASE_LIMITS[phase].limit_s:g} s"
    if machine is None:
        return BootFailed(f"the machine did not start ({phase}): {reason}", boot_phase=phase)
    picture = await _last_picture(machine.vm, failures)
    log = "\n".join(line for name in ("qemu.log", LOG) for line in tail(machine.vm.folder / name, LOG_LINES))
    await machine.vm.end()
    message = f"the machine did not come up ({phase}): {reason}"
    return BootFailed(message, boot_phase=phase, log=log, screenshot=picture)


async def _last_picture(vm: VmProcess, failures: Path) -> str:
    """Keep the screen of a machine that failed; "" when it shows nothing any more."""
    failures.mkdir(parents=True, exist_ok=True)
    path = failures / f"{time.strftime('%Y%m%d-%H%M%S')}-{vm.pid}.png"
    try:
        await vm.screenshot(path)
    except EnvError:
        return ""
    for old in sorted(failures.glob("*.png"))[:-KEPT_FAILURES]:
        with contextlib.suppress(FileNotFoundError):
            old.unlink()
    return str(path)


def empty_folder(folder: Path) -> None:
    """A machine is started again in a fresh folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
