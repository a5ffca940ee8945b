"""What `benchmarks.chaos.product` breaks: each a context that shows on entry that it hit, and ends on exit.

It yields the proof in words, or raises Missed: a fault that hit nothing proves nothing.
"""

from __future__ import annotations

import sqlite3
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import psycopg
import redis

from benchmarks.chaos.product_run import Missed, Run
from testing.private_installation import REPOSITORY
from testing.small_disk import fill, free_bytes, make_room
from testing.watch_installation import processes

GONE_S = 10.0
LOCK_S = 30.0
AWAY_S = 10.0
FULL_S = 25.0
CLOCK_S = 25.0
CUT_S = 25.0
HELD_S = 60.0
OFFSET = struct.Struct("=q")
Struck = AbstractContextManager[str]


@dataclass(frozen=True)
class Fault:
    """One row of the table."""

    name: str
    strike: Callable[[Run], Struck]
    lasts_s: float = 0.0
    tells: str = ""
    """A pattern that pages, /healthz, incidents or logs have to answer with; "" = need not be told."""
    may_error: bool = False
    """Whether it takes away what trajectories run on. Else none may error."""
    waits: bool = False
    """Nothing new can be scored while it lasts."""


def killed(*words: str) -> Callable[[Run], Struck]:
    """SIGKILL to the newest process with these words in its command line."""

    @contextmanager
    def strike(run: Run) -> Iterator[str]:
        found = processes(run.deskhand, *words)
        if not found:
            raise Missed(f"no process with {words}")
        run.wait_running()
        yield kill(found[-1])

    return strike


def kill(victim: psutil.Process) -> str:
    name = f"pid {victim.pid} ({' '.join(victim.cmdline())[-60:].strip()})"
    victim.kill()
    try:
        victim.wait(GONE_S)
    except psutil.TimeoutExpired as exc:
        raise Missed(f"{name} is still there") from exc
    return f"{name} gone"


@contextmanager
def kill_web(run: Run) -> Iterator[str]:
    with killed("uvicorn", "webapp.asgi")(run) as proof:
        try:
            httpx.get(f"{run.deskhand.url}/healthz", timeout=0.2, trust_env=False)
        except httpx.TransportError as error:
            proof += f"; {type(error).__name__} from its port"
        yield proof


@contextmanager
def kill_dispatcher_twice(run: Run) -> Iterator[str]:
    with killed("manage.py", "dispatch")(run) as first:
        deadline = time.monotonic() + 60
        while not (again := processes(run.deskhand, "manage.py", "dispatch")):
            if time.monotonic() > deadline:
                raise Missed("the dispatcher was not started again")
            time.sleep(0.1)
        time.sleep(2.0)  # into its first ticks, where it takes back and sends
        yield f"{first}; {kill(again[-1])}"


@contextmanager
def two_dispatchers(run: Run) -> Iterator[str]:
    """A second one beside the supervisor's, which an operator started by mistake."""
    command = [sys.executable, str(REPOSITORY / "manage.py"), "dispatch"]
    with (run.folder / "second-dispatcher.log").open("wb") as log:
        second = subprocess.Popen(
            command, env=run.deskhand.environment, cwd=REPOSITORY, stdout=log, stderr=log
        )
    try:
        time.sleep(5.0)
        found = [process.pid for process in processes(run.deskhand, "manage.py", "dispatch")]
        if len(found) < 2 or second.poll() is not None:
            raise Missed(f"not two dispatchers: {found}")
        yield f"pids {found} at once"
        if second.poll() is not None:
            raise Missed("the second dispatcher ended by itself")
    finally:
        second.terminate()
        second.wait()


@contextmanager
def flush_redis(run: Run) -> Iterator[str]:
    run.wait_running(least=2)
    password = (run.folder / "secrets" / "redis_password").read_text()
    client = redis.Redis(port=run.deskhand.redis_port, password=password)
    jobs, before = client.llen("env"), client.dbsize()
    client.flushall()
    after = client.dbsize()
    if not before or after >= before:
        raise Missed(f"{before} keys before, {after} after")
    yield f"{before} keys, {jobs} of them jobs' -> {after}"


@contextmanager
def kill_env_worker(run: Run) -> Iterator[str]:
    """One in the middle of trajectories; none of those may end with a score."""
    ids = run.wait_running("w.name like 'env%'", least=1)
    ((pid,),) = run.rows(
        "select w.pid from fleet_worker w join trajectories_trajectory t on t.worker_id = w.id"
        f" where t.id = {ids[0]}"
    )
    held = run.running(f"w.pid = {pid}")
    if not held:
        raise Missed("its trajectory had just ended")
    proof = kill(psutil.Process(pid))
    yield f"{proof} with trajectories {held}"
    must_error(run, held)


@contextmanager
def kill_desk_host(run: Run) -> Iterator[str]:
    found = processes(run.deskhand, "workers.desktops.host", "--state-dir")
    held = run.wait_running(least=2)
    proof = kill(found[0])
    yield f"{proof} under trajectories {held}"
    must_error(run, held)


def must_error(run: Run, held: list[int], *, limit_s: float = HELD_S) -> None:
    """What was struck in the middle of its turns has neither score nor reward."""
    listed = ", ".join(map(str, held))
    deadline = time.monotonic() + limit_s
    query = f"select id, status, score, reward from trajectories_trajectory where id in ({listed})"
    while pending := [row for row in run.rows(query) if row[1] in ("resetting", "running", "evaluating")]:
        if time.monotonic() > deadline:
            raise Missed(f"still running after {limit_s:.0f} s: {pending}")
        time.sleep(0.5)
    # One that came to its end between the look and the blow was scored before.
    if all(row[1] not in ("errored", "cancelled") for row in run.rows(query)):
        raise Missed(f"none of {held} was hit")


@contextmanager
def lock_database(run: Run) -> Iterator[str]:
    """Another process writes for half a minute, as a VACUUM does."""
    run.wait_running()
    file = run.folder / "deskhand.sqlite3"
    holder = sqlite3.connect(file, isolation_level=None, timeout=60)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        locked(file)
        yield f"BEGIN EXCLUSIVE held for {LOCK_S:.0f} s; another writer is refused"
        locked(file)
    finally:
        holder.execute("ROLLBACK")
        holder.close()


def locked(file: object) -> None:
    probe = sqlite3.connect(str(file), isolation_level=None, timeout=0)
    try:
        probe.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError:
        return
    finally:
        probe.close()
    raise Missed("the database took a writer")


@contextmanager
def stop_postgres(run: Run) -> Iterator[str]:
    """An immediate stop: all connections break; ten seconds later it is back."""
    assert run.cluster is not None
    run.wait_running()
    run.cluster.stop()
    try:
        psycopg.connect(run.cluster.url, connect_timeout=2).close()
    except psycopg.OperationalError as error:
        yield f"no server for {AWAY_S:.0f} s: {str(error).splitlines()[0][:60]}"
    else:
        raise Missed("PostgreSQL still answers")
    finally:
        run.cluster.start()


def filled(folder: str) -> Callable[[Run], Struck]:
    """The last byte of the file system at that folder of the installation, for 25 s."""

    @contextmanager
    def strike(run: Run) -> Iterator[str]:
        place = run.folder / folder
        run.wait_running()
        fill(place)
        try:
            if free := free_bytes(place):
                raise Missed(f"{free} bytes are free")
            yield f"0 bytes free in {folder or 'the data folder'} for {FULL_S:.0f} s"
        finally:
            make_room(place)

    return strike


def clock_moved(seconds: int, *, then: Callable[[Run], Struck] | None = None) -> Callable[[Run], Struck]:
    """The wall clock of all processes steps; heartbeats in the database show it."""

    @contextmanager
    def strike(run: Run) -> Iterator[str]:
        assert run.clock is not None
        run.wait_running()
        before = offset(run)
        step_clock(run.clock, before + seconds)
        deadline = time.monotonic() + 30
        while abs(heartbeat_offset(run) - before - seconds) > 60:
            if time.monotonic() > deadline:
                raise Missed(f"heartbeats are {heartbeat_offset(run):+.0f} s off, not {before + seconds:+d}")
            time.sleep(0.5)
        proof = f"heartbeats are {heartbeat_offset(run):+.0f} s off, {before:+d} before"
        if then is None:
            yield proof
            return
        with then(run) as more:
            yield f"{proof}; {more}"

    return strike


def offset(run: Run) -> int:
    assert run.clock is not None
    (seconds,) = OFFSET.unpack(run.clock.read_bytes())
    return seconds


def step_clock(clock: Path, seconds: int) -> None:
    """In place, for `stepped_clock.c` has the file mapped."""
    with clock.open("r+b" if clock.exists() else "wb") as file:
        file.write(OFFSET.pack(seconds))


def heartbeat_offset(run: Run) -> float:
    """Of the newest heartbeat from this machine's true time, in seconds."""
    ((at,),) = run.rows("select max(strftime('%s', heartbeat_at)) from fleet_worker where status = 'online'")
    return float(at or 0) - time.time()
