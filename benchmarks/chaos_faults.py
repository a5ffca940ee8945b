"""What is broken on purpose by `benchmarks.desktop_chaos`: one function and one table row per fault."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from workers.deskhost.client import DeskHostClient
from workers.deskhost.models import DesktopStatus, Phase
from workers.providers.agent_client import AgentClient
from workers.providers.base import EnvError

LEASE_S = 15.0
"""As `workers.environments.local` leases."""
SLACK_S = 3.0
"""The desk host looks twice a second, and this benchmark four times."""
FIRST_BOOT_S = 600
"""The first virtual machine of an installation is booted, without KVM in minutes; all others are clones."""
CUT_OFF_S = 25.0
"""Longer than a lease and than the heartbeat limits: the cut-off side is given up, then comes back."""


@dataclass
class World:
    """One installation under attack."""

    folder: Path
    redis_port: int
    client: DeskHostClient
    busy: Callable[[], set[str]]
    """Names of desktops on which a trajectory runs now."""

    def victim(self) -> DesktopStatus:
        """A leased desktop in the middle of a trajectory."""
        deadline = time.monotonic() + FIRST_BOOT_S
        while time.monotonic() < deadline:
            with contextlib.suppress(EnvError):
                busy = self.busy()
                found = [
                    r for r in self.client.list() if r.phase is Phase.LEASED and r.info.desktop_id in busy
                ]
                if found:
                    return random.choice(found)
            time.sleep(0.05)
        raise TimeoutError("no trajectory runs")

    def processes(self, *words: str) -> list[psutil.Process]:
        """Processes of this installation whose command line has all these words."""
        found = []
        for process in psutil.process_iter(["cmdline", "environ"]):
            line = " ".join(process.info["cmdline"] or [])
            environ = process.info["environ"] or {}
            is_ours = str(self.folder) in line or environ.get("DESKHAND_DATA_DIR") == str(self.folder)
            if is_ours and all(word in line for word in words):
                found.append(process)
        return found

    def inside(self, row: DesktopStatus, word: str) -> psutil.Process:
        """A process of a desktop by a word of its command line, not the sandbox around it."""
        family = psutil.Process(row.pid).children(recursive=True)
        for process in family:
            with contextlib.suppress(psutil.Error):
                if word in " ".join(process.cmdline()) and "bwrap" not in process.name():
                    return process
        raise LookupError(f"desktop {row.info.desktop_id} has no process {word!r}")


@dataclass
class Strike:
    """What was hit, and how to know that it was reaped."""

    leases: set[str]
    """Ids of the leases that have to be over."""
    desktops: set[tuple[str, int]]
    """(desktop, generation) that have to be gone."""
    restore: Callable[[], None] | None = None
    """Ends the fault; called after `CUT_OFF_S`."""


def of(row: DesktopStatus) -> Strike:
    return Strike(set(), {(row.info.desktop_id, row.info.generation)})


def resume(process: psutil.Process) -> Callable[[], None]:
    def go_on() -> None:
        with contextlib.suppress(psutil.Error):
            process.resume()

    return go_on


def kill_desktop(world: World) -> Strike:
    row = world.victim()
    os.kill(row.pid, signal.SIGKILL)
    return of(row)


def kill_display(world: World) -> Strike:
    row = world.victim()
    world.inside(row, "Xvnc").kill()
    return of(row)


def kill_agent(world: World) -> Strike:
    row = world.victim()
    world.inside(row, "workers.guest.agent").kill()
    return of(row)


def cut_off_agent(world: World) -> Strike:
    """No byte goes either way any more, as with a network that drops everything."""
    row = world.victim()
    agent = world.inside(row, "workers.guest.agent")
    agent.suspend()
    strike = of(row)
    strike.restore = resume(agent)
    return strike


def cut_off_display(world: World) -> Strike:
    row = world.victim()
    display = world.inside(row, "Xvnc")
    display.suspend()
    strike = of(row)
    strike.restore = resume(display)
    return strike


def fill_disk(world: World) -> Strike:
    """HOME and /tmp of every desktop in use, to the last byte; nothing dies of it."""
    busy = {world.victim().info.desktop_id} | world.busy()
    for row in world.client.list():
        if row.phase is Phase.LEASED and row.info.desktop_id in busy:
            with contextlib.suppress(EnvError), AgentClient(row.info.endpoints.agent, timeout_s=60) as agent:
                script = "for d in ~ /tmp; do cat /dev/zero > $d/.filler; done; true"
                agent.execute(script, shell=True, timeout_s=50)
    return Strike(set(), set())


def _worker_of(world: World) -> tuple[psutil.Process, Strike]:
    """An env worker with a running trajectory, and its leases."""
    workers = world.processes("celery", "-Q env")  # a slow search: trajectories may end meanwhile
    row = world.victim()
    name = row.holder.partition("@")[0]
    (process,) = [p for p in workers if f"{name}@" in " ".join(p.info["cmdline"])]
    held = {r.lease_id for r in world.client.list() if r.holder.startswith(f"{name}@")}
    return process, Strike(held, set())


def kill_worker(world: World) -> Strike:
    process, strike = _worker_of(world)
    process.kill()
    return strike


def cut_off_worker(world: World) -> Strike:
    """Its machine cannot be reached for a while; then it goes on as if nothing had happened."""
    process, strike = _worker_of(world)
    process.suspend()
    strike.restore = resume(process)
    return strike


def kill_desk_host(world: World) -> Strike:
    (process,) = world.processes("workers.deskhost", "--state-dir")
    world.victim()
    rows = world.client.list()
    process.kill()
    return Strike({r.lease_id for r in rows if r.lease_id}, set())


def cut_off_redis(world: World) -> Strike:
    mark = f":{world.redis_port}"  # Redis rewrites its command line, and its environment with it
    lines = [(p, p.info["cmdline"] or []) for p in psutil.process_iter(["cmdline"])]
    (process,) = [p for p, words in lines if any(word.endswith(mark) for word in words)]
    world.victim()
    process.suspend()
    return Strike(set(), set(), resume(process))


def kill_machine(world: World) -> Strike:
    row = world.victim()
    psutil.Process(row.pid).kill()
    return of(row)


def cut_off_machine(world: World) -> Strike:
    row = world.victim()
    machine = psutil.Process(row.pid)
    machine.suspend()
    strike = of(row)
    strike.restore = resume(machine)
    return strike


def kill_machine_agent(world: World) -> Strike:
    """The service inside is ended for good, so that no init starts it again."""
    row = world.victim()
    with contextlib.suppress(EnvError), AgentClient(row.info.endpoints.agent, timeout_s=20) as agent:
        script = "sudo -n systemctl stop deskhand-agent 2>/dev/null; pkill -9 -f agent"
        agent.execute(script, shell=True, timeout_s=10)
    return of(row)


@dataclass(frozen=True)
class Fault:
    """One row of the table."""

    name: str
    strike: Callable[[World], Strike]
    provider: str = "x11"
    reap_limit_s: float = LEASE_S + SLACK_S
    most_places: int = 1000
    must_hit: bool = True
    """A strike that errors no trajectory has missed: the fault is tried again."""


FAULTS = (
    Fault("kill -9 the desktop's sandbox", kill_desktop),
    Fault("kill -9 the X server", kill_display),
    Fault("kill -9 the guest agent", kill_agent),
    # Noticed by the desk host's own question after 12 s of silence, asked every 4 s with 6 s of patience.
    Fault("cut off the guest agent (SIGSTOP)", cut_off_agent, reap_limit_s=2 * LEASE_S),
    Fault("cut off the X server (SIGSTOP)", cut_off_display, reap_limit_s=2 * LEASE_S),
    Fault("fill HOME and /tmp of every desktop", fill_disk),
    Fault("kill -9 an env worker", kill_worker),
    Fault("cut off an env worker for 25 s (SIGSTOP)", cut_off_worker),
    Fault("cut off Redis for 25 s (SIGSTOP)", cut_off_redis, must_hit=False),
    Fault("kill -9 the desk host", kill_desk_host),
    Fault("kill -9 QEMU", kill_machine, "qemu", most_places=4),
    Fault("kill the agent in the guest", kill_machine_agent, "qemu", reap_limit_s=8 * LEASE_S, most_places=4),
    Fault("cut off QEMU (SIGSTOP)", cut_off_machine, "qemu", reap_limit_s=8 * LEASE_S, most_places=4),
    Fault("fill the guest's disk", fill_disk, "qemu", most_places=4),
    Fault("kill -9 an env worker of QEMU desktops", kill_worker, "qemu", most_places=4),
)


def restore_later(strike: Strike) -> None:
    """End a cut-off after its time."""
    if strike.restore is not None:
        threading.Timer(CUT_OFF_S, strike.restore).start()


def is_reaped(world: World, strike: Strike) -> bool:
    """True when no lease and no generation that was hit is there any more."""
    try:
        rows = world.client.list()
    except EnvError:
        return False
    leases = {row.lease_id for row in rows}
    alive = {(row.info.desktop_id, row.info.generation) for row in rows}
    return not (strike.leases & leases or strike.desktops & alive)
