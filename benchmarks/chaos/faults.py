"""What is broken on purpose by `benchmarks.chaos.desktop_chaos`: one function and one table row per fault."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from benchmarks.chaos.remote_parts import Far
from testing.small_disk import fill, make_room
from testing.watch_installation import processes
from workers.desktops.agent_client import AgentClient
from workers.desktops.contract import EnvError
from workers.desktops.host.client import DeskHostClient
from workers.desktops.host.messages import DesktopStatus, Phase

LEASE_S = 15.0
"""As `workers.environments.local` leases."""
SLACK_S = 2.0
"""The desk host looks four times a second, and so does this benchmark; each asks over a socket."""
FIRST_BOOT_S = 600
"""The first virtual machine of an installation is booted, without KVM in minutes; all others are clones."""
AGENT = "workers.guest.agent"
FILL_SCRIPT = """
for d in ~ /tmp; do
  free_kib=$(df -Pk $d | awk 'NR == 2 {print $4}')
  fallocate -l ${free_kib}K $d/.filler-1
  cat /dev/zero > $d/.filler-2
done
true
"""
CUT_OFF_S = 25.0
"""Longer than a lease and than the heartbeat limits: the cut-off side is given up, then comes back."""


class NothingRuns(Exception):
    """Raised when there was nothing to strike: every trajectory had ended, or none began."""


@dataclass
class World:
    """One installation under attack."""

    folder: Path
    redis_port: int
    client: DeskHostClient
    busy: Callable[[], set[str]]
    """Names of desktops on which a trajectory runs now."""
    is_going: Callable[[], bool]
    """Whether any trajectory has still to end."""
    overlays: Path
    """File system of its own, where desktops have their folders and overlays."""
    far: Far

    def victim(self, holder: str = "") -> DesktopStatus:
        """A leased desktop in the middle of a trajectory, of a holder whose name begins so."""
        deadline = time.monotonic() + FIRST_BOOT_S
        while time.monotonic() < deadline and self.is_going():
            with contextlib.suppress(EnvError):
                busy = self.busy()
                leased = [row for row in self.client.list() if row.phase is Phase.LEASED]
                found = [
                    row for row in leased if row.info.desktop_id in busy and row.holder.startswith(holder)
                ]
                if found:
                    return random.choice(found)
            time.sleep(0.05)
        raise NothingRuns

    def inside(self, row: DesktopStatus, word: str) -> psutil.Process:
        """The process with this word in its command line, but not the sandbox; "" = the desktop itself."""
        desktop = psutil.Process(row.pid)
        if not word:
            return desktop
        for process in desktop.children(recursive=True):
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
    client: DeskHostClient | None = None
    """Desk host of the desktops; None: the installation's own."""


def of(row: DesktopStatus, restore: Callable[[], None] | None = None) -> Strike:
    return Strike(set(), {(row.info.desktop_id, row.info.generation)}, restore)


def suspended(process: psutil.Process) -> Callable[[], None]:
    """Stop it; answers what lets it go on."""
    process.suspend()

    def go_on() -> None:
        with contextlib.suppress(psutil.Error):
            process.resume()

    return go_on


def killed(word: str = "") -> Callable[[World], Strike]:
    """SIGKILL to this process of a desktop, as `World.inside` finds it."""

    def strike(world: World) -> Strike:
        row = world.victim()
        world.inside(row, word).kill()
        return of(row)

    return strike


def cut_off(word: str = "") -> Callable[[World], Strike]:
    """No byte goes to or from this process any more, as with a network that drops everything."""

    def strike(world: World) -> Strike:
        row = world.victim()
        return of(row, suspended(world.inside(row, word)))

    return strike


def fill_disk(world: World) -> Strike:
    """HOME and /tmp of every desktop in use, to the last byte; nothing dies of it."""
    busy = {world.victim().info.desktop_id} | world.busy()
    for row in world.client.list():
        if row.phase is Phase.LEASED and row.info.desktop_id in busy:
            with contextlib.suppress(EnvError), AgentClient(row.info.endpoints.agent, timeout_s=60) as agent:
                agent.execute(FILL_SCRIPT, shell=True, timeout_s=50)
    return Strike(set(), set())


def fill_overlays(world: World) -> Strike:
    """Not a byte is left for what desktops write; one of them writes at once."""
    row = world.victim()
    fill(world.overlays)
    with contextlib.suppress(EnvError), AgentClient(row.info.endpoints.agent, timeout_s=10) as agent:
        agent.execute("dd if=/dev/urandom of=~/.written bs=1M count=16 conv=fsync", shell=True, timeout_s=8)
    return of(row, lambda: make_room(world.overlays))


def cut_network_of_worker(world: World) -> Strike:
    """Database and broker are across the link; its desktops are not, so it keeps their leases."""
    world.victim(holder="far@")
    world.far.network.cut()
    return Strike(set(), set(), world.far.network.mend)


def cut_network_of_desktops(world: World) -> Strike:
    """Every desktop behind the link, in the middle of their trajectories."""
    network = world.far.network
    while not any(name.startswith(network.far) for name in world.busy()):
        if not world.is_going():
            raise NothingRuns
        time.sleep(0.05)
    host = world.far.desk_host
    leases = {row.lease_id for row in host.list() if row.lease_id}
    network.cut()
    return Strike(leases, set(), network.mend, host)


def _worker_of(world: World) -> tuple[psutil.Process, Strike]:
    """An env worker with a running trajectory, and its leases."""
    workers = processes(world, "celery", "-Q env")  # a slow search: trajectories may end meanwhile
    row = world.victim()
    name = row.holder.partition("@")[0]
    (process,) = [p for p in workers if f"{name}@" in " ".join(p.cmdline())]
    held = {r.lease_id for r in world.client.list() if r.holder.startswith(f"{name}@")}
    return process, Strike(held, set())


def kill_worker(world: World) -> Strike:
    process, strike = _worker_of(world)
    process.kill()
    return strike


def cut_off_worker(world: World) -> Strike:
    """Its machine cannot be reached for a while; then it goes on as if nothing had happened."""
    process, strike = _worker_of(world)
    strike.restore = suspended(process)
    return strike


def kill_desk_host(world: World) -> Strike:
    (process,) = processes(world, "workers.desktops.host", "--state-dir")
    world.victim()
    rows = world.client.list()
    process.kill()
    return Strike({r.lease_id for r in rows if r.lease_id}, set())


def cut_off_redis(world: World) -> Strike:
    (process,) = processes(world, "-server")
    world.victim()
    return Strike(set(), set(), suspended(process))


def kill_machine_agent(world: World) -> Strike:
    """SIGKILL from inside the guest, to the process that answers."""
    row = world.victim()
    with contextlib.suppress(EnvError), AgentClient(row.info.endpoints.agent, timeout_s=20) as agent:
        agent.execute(f"pkill -9 -f {AGENT}", shell=True, timeout_s=10)
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
    ground: Callable[[World], AbstractContextManager[dict[str, Any]]] | None = None
    """What stands while the fault is measured; yields changes of the desktops' config."""


FAULTS = (
    Fault("kill -9 the desktop's sandbox", killed()),
    Fault("kill -9 the X server", killed("Xvnc")),
    Fault("kill -9 the guest agent", killed(AGENT)),
    # Noticed by the desk host's own question after 12 s of silence, asked every 4 s with 6 s of patience.
    Fault("cut off the guest agent (SIGSTOP)", cut_off(AGENT), reap_limit_s=2 * LEASE_S),
    Fault("cut off the X server (SIGSTOP)", cut_off("Xvnc"), reap_limit_s=2 * LEASE_S),
    Fault("fill HOME and /tmp of every desktop", fill_disk),
    Fault("kill -9 an env worker", kill_worker),
    Fault("cut off an env worker for 25 s (SIGSTOP)", cut_off_worker),
    Fault("cut off Redis for 25 s (SIGSTOP)", cut_off_redis, must_hit=False),
    Fault(
        "cut the network of an env worker for 25 s (namespace)",
        cut_network_of_worker,
        ground=lambda world: world.far.worker(),
    ),
    # An env server looks every second for episodes that fell silent.
    Fault(
        "cut the network of desktops for 25 s (namespace)",
        cut_network_of_desktops,
        "remote",
        reap_limit_s=LEASE_S + SLACK_S + 1.0,
        ground=lambda world: world.far.desktops(),
    ),
    Fault("kill -9 the desk host", kill_desk_host),
    Fault("kill -9 QEMU", killed(), "qemu", most_places=4),
    Fault("kill -9 the agent in the guest", kill_machine_agent, "qemu", most_places=4),
    Fault("cut off QEMU (SIGSTOP)", cut_off(), "qemu", reap_limit_s=2 * LEASE_S, most_places=4),
    Fault("fill the guest's disk", fill_disk, "qemu", most_places=4),
    Fault("fill the host's disk under QEMU for 25 s", fill_overlays, "qemu", most_places=4),
    Fault("kill -9 an env worker of QEMU desktops", kill_worker, "qemu", most_places=4),
)


def restore_later(strike: Strike) -> Callable[[], bool]:
    """End a cut-off after its time; tells whether what was cut off is back, or nothing was."""
    if strike.restore is None:
        return lambda: True
    timer = threading.Timer(CUT_OFF_S, strike.restore)
    timer.start()
    return timer.finished.is_set


def is_reaped(world: World, strike: Strike) -> bool:
    """True when no lease and no generation that was hit is there any more."""
    try:
        rows = (strike.client or world.client).watch().desktops
    except EnvError:
        return False
    leases = {row.lease_id for row in rows}
    alive = {(row.info.desktop_id, row.info.generation) for row in rows}
    return not (strike.leases & leases or strike.desktops & alive)
