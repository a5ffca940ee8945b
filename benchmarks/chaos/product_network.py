"""What stands behind links: an env worker, an env server, hosts that joined; each is cut, killed, slowed."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from benchmarks.chaos.product_faults import Struck, kill, must_error
from benchmarks.chaos.product_run import Missed, Run
from benchmarks.chaos.remote_parts import FAR_PORT, Far, serves, started
from testing.joined_machine import JoinedMachine, processes_of
from testing.linked_network import Network
from testing.small_disk import slowed
from testing.watch_installation import processes
from webapp.lib.supervisor.ports import free_port

LOST_S = 60.0
CUT_OFF_S = 30.0
SLOW_S = 30.0
RESTART_LIMIT_S = 180.0
LEAST_WAIT_S = 0.5
HOSTS = ("far-a", "far-b")
FAR_DISK = "far"
"""The desk host's folder behind the link."""


def far_parts(run: Run) -> Far:
    """The product's own programs behind the first link."""
    online = "select name from fleet_worker where status = 'online'"
    return Far(
        run.folder,
        run.links[0],
        run.deskhand.environment,
        run.deskhand.redis_port,
        lambda: [name for (name,) in run.rows(online)],
    )


def start_far_worker(run: Run) -> dict[str, Any]:
    """It lives until the lane's end."""
    return run.stack.enter_context(far_parts(run).worker())


def start_env_servers(run: Run) -> dict[str, Any]:
    """One here, one behind the link with desktops of its own; answers what the config says of them."""
    knobs = run.stack.enter_context(far_parts(run).desktops())["remote"]
    run.deskhand.manage("grant_secret", knobs["token_secret"], "home", *knobs["urls"])
    return {"desktops.provider": "remote"} | {f"desktops.remote.{name}": knob for name, knob in knobs.items()}


def start_joined_hosts(run: Run) -> dict[str, Any]:
    """All desktops are theirs."""
    for host in run.hosts:
        host.join()
        run.stack.callback(host.stop)
        host.start()
    online = "select name from fleet_worker where status = 'online' and queue = 'env'"
    started("the joined hosts' workers", lambda: len(run.rows(online)) == len(run.hosts))
    return {}


def ports_of(links: Sequence[Network]) -> dict[str, str]:
    """Where hosts reach the server."""
    return {"DESKHAND_HOSTS_ADDRESS": links[0].near, "DESKHAND_HOSTS_PORT": str(free_port())}


def hosts_in(folder: Path, run: Run, slots: int) -> list[JoinedMachine]:
    """One behind each link, with a folder of its own."""
    made = []
    for name, link in zip(HOSTS, run.links, strict=True):
        (folder / name).mkdir(mode=0o755, exist_ok=True)
        others = [folder / other for other in HOSTS if other != name]
        made.append(
            JoinedMachine(name, link, folder / name, run.deskhand, slots=slots // len(HOSTS), hidden=others)
        )
    return made


@contextmanager
def cut_worker(run: Run) -> Iterator[str]:
    """No packet comes through either way; what the worker had begun goes to others."""
    (link,) = run.links
    held = run.wait_running("w.name like 'far@%'")
    with _down([link]):
        deadline = time.monotonic() + LOST_S
        while run.rows("select status from fleet_worker where name like 'far@%'") != [("lost",)]:
            if time.monotonic() > deadline:
                raise Missed("the worker behind the link still beats")
            time.sleep(0.5)
        yield f"link down under trajectories {held}; no heartbeat came through"


def cut(which: slice, where: str) -> Callable[[Run], Struck]:
    """These links, under trajectories that run there."""

    @contextmanager
    def strike(run: Run) -> Iterator[str]:
        held = run.wait_running(where)
        with _down(run.links[which]):
            yield f"{len(run.links[which])} links down for {CUT_OFF_S:.0f} s under trajectories {held}"

    return strike


@contextmanager
def _down(links: Sequence[Network]) -> Iterator[None]:
    try:
        for link in links:
            link.cut()
        if any(link.is_up for link in links):
            raise Missed("a link is up")
        yield
    finally:
        for link in links:
            link.mend()


@contextmanager
def kill_joined_host(run: Run) -> Iterator[str]:
    """All of it at one moment, and it is started again."""
    host = run.hosts[0]
    held = run.wait_running(f"w.name like '%@{host.name}'")
    doomed = processes_of(host.data)
    host.kill()
    gone, left = psutil.wait_procs(doomed, timeout=10)
    if left:
        raise Missed(f"{left} are still there")
    host.start()
    yield f"{len(gone)} processes gone under trajectories {held}"
    must_error(run, held, limit_s=RESTART_LIMIT_S)


@contextmanager
def kill_env_server(run: Run) -> Iterator[str]:
    """The one behind the link; what starts services there starts it again."""
    far = far_parts(run)
    held = run.wait_running(on_far(run))
    (server,) = processes(run.deskhand, "workers.env_server", far.network.far)
    proof = kill(server)
    far.start_again(run.stack)
    yield f"{proof} under trajectories {held}"
    started("the env server", lambda: serves(f"http://{far.network.far}:{FAR_PORT}"))
    must_error(run, held, limit_s=RESTART_LIMIT_S)


def on_far(run: Run) -> str:
    """Trajectories on desktops behind the link."""
    return f"t.desktop_id in (select id from fleet_desktop where name like '{run.links[0].far}%')"


@contextmanager
def cut_env_server(run: Run) -> Iterator[str]:
    with cut(slice(1), on_far(run))(run) as proof:
        yield proof


def slow(place: Callable[[Run], Path]) -> Callable[[Run], Struck]:
    """Writes to this disk wait for most of half a minute."""

    @contextmanager
    def strike(run: Run) -> Iterator[str]:
        held = run.wait_running()
        with slowed(place(run)):
            waited = max(_wait_of_write(place(run)) for _ in range(3))
            if waited < LEAST_WAIT_S:
                raise Missed(f"a write took {waited:.2f} s")
            yield f"for {SLOW_S:.0f} s a write waits {waited:.1f} s, under trajectories {held}"

    return strike


def _wait_of_write(place: Path) -> float:
    began = time.monotonic()
    with tempfile.TemporaryFile(dir=place) as file:
        file.write(b"x")
        file.flush()
        os.fsync(file.fileno())
    return time.monotonic() - began
