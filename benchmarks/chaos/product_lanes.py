"""The lanes of `benchmarks.chaos.product`: which faults share an installation, and what they stand on."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.chaos import product_faults as faults
from benchmarks.chaos import product_network as network
from benchmarks.chaos.product_faults import (
    CLOCK_S,
    CUT_S,
    FULL_S,
    LOCK_S,
    Fault,
    clock_moved,
    filled,
    killed,
    step_clock,
)
from benchmarks.chaos.product_network import CUT_OFF_S, FAR_DISK, HOSTS, SLOW_S, slow
from benchmarks.chaos.product_run import Run
from testing.joined_machine import JoinedMachine
from testing.private_installation import Instance
from testing.private_postgres import running_cluster
from testing.routed_networks import routed_networks
from testing.small_disk import NoGround, small_disk, small_ext4

SLOTS = 4
SLOW_DISK_MB = 3000
"""Sparse."""
START_TIMEOUT_S = 900.0
"""Long: the machine may have other work."""


@dataclass(frozen=True, kw_only=True)
class Lane:
    """One experiment on one installation."""

    name: str
    faults: tuple[Fault, ...]
    changes: dict[str, object] = field(default_factory=dict)
    """Of the config."""
    database: str = "sqlite"
    disks: dict[str, int] = field(default_factory=dict)
    """Folder of the installation -> megabytes of its own file system."""
    slow_disks: tuple[str, ...] = ()
    """Folders of the installation that can be slowed."""
    env: dict[str, str] = field(default_factory=dict)
    has_clock: bool = False
    num_links: int = 0
    begin: Callable[[Run], dict[str, Any]] | None = None
    """What is started behind the links; answers changes of the config."""
    has_hosts: bool = False
    """One that joined behind each link; the installation has no desktops of its own."""


SIGKILL = r"SIGKILL|code -9"
LANES = (
    Lane(
        name="around the work",
        faults=(
            Fault("kill -9 web", faults.kill_web, tells=SIGKILL),
            Fault("kill -9 Redis", killed("redis-server"), tells=SIGKILL),
            Fault("FLUSHALL", faults.flush_redis),
            Fault("kill -9 the dispatcher, twice", faults.kill_dispatcher_twice, tells=SIGKILL),
            Fault("two dispatchers for 20 s", faults.two_dispatchers, lasts_s=15.0),
        ),
    ),
    Lane(
        name="who does the work",
        changes={"optimiser.num_processes": 2},
        faults=(
            Fault("kill -9 an env worker", faults.kill_env_worker, may_error=True, tells="stopped answering"),
            Fault("kill -9 the desk host", faults.kill_desk_host, may_error=True, tells=SIGKILL),
            Fault(
                "kill -9 a rank of two",
                killed("-m training.loop.train"),
                may_error=True,
                tells=r"Attempt 1: rank \d of the trainer was ended by SIGKILL",
            ),
            Fault(
                "kill -9 the trainer's launcher",
                killed("training.distributed.launch"),
                may_error=True,
                tells="Attempt 2: the trainer .*SIGKILL",
            ),
            Fault(
                "kill -9 the policy server",
                killed("training.sampler.server"),
                may_error=True,
                tells="Attempt 3: the policy server .*SIGKILL",
            ),
            Fault(
                "kill -9 the gpu worker",
                killed("celery", "-Q gpu"),
                may_error=True,
                tells="Attempt 4: gpu worker .* stopped answering",
            ),
        ),
    ),
    Lane(
        name="locked and full",
        disks={"media": 64, "experiments": 1000},
        env={"DESKHAND_FRAMES_LEAST_FREE": "8MB", "DESKHAND_CHECKPOINTS_LEAST_FREE": "8MB"},
        faults=(
            Fault(
                "database locked for 30 s",
                faults.lock_database,
                lasts_s=LOCK_S,
                waits=True,
                tells="database is locked",
            ),
            Fault(
                "disk of media full", filled("media"), lasts_s=FULL_S, waits=True, tells="frames: .* missing"
            ),
            Fault(
                "disk of checkpoints full",
                filled("experiments"),
                lasts_s=FULL_S,
                waits=True,
                tells="checkpoints(:| in) .* missing",
            ),
        ),
    ),
    Lane(
        name="one disk",
        disks={"": 1500},
        env={f"DESKHAND_{kept}_LEAST_FREE": "16MB" for kept in ("FRAMES", "DATABASE", "CHECKPOINTS")},
        faults=(Fault("the only disk full", filled(""), lasts_s=FULL_S, waits=True, tells="missing"),),
    ),
    Lane(
        name="clock",
        has_clock=True,
        faults=(
            Fault("clock one hour ahead", clock_moved(3600), lasts_s=CLOCK_S),
            Fault("clock one hour back", clock_moved(-3600), lasts_s=CLOCK_S),
            Fault(
                "clock one hour back, then kill -9 an env worker",
                clock_moved(-3600, then=faults.kill_env_worker),
                lasts_s=CLOCK_S,
                may_error=True,
                tells="stopped answering",
            ),
        ),
    ),
    Lane(
        name="postgresql and network",
        database="postgresql",
        num_links=1,
        begin=network.start_far_worker,
        faults=(
            Fault(
                "PostgreSQL away for 10 s",
                faults.stop_postgres,
                lasts_s=faults.AWAY_S,
                waits=True,
                tells="database is locked or away",
            ),
            Fault(
                "network of an env worker cut for 25 s",
                network.cut_worker,
                lasts_s=CUT_S,
                may_error=True,
                tells="far@.* stopped answering",
            ),
        ),
    ),
)
FAR_LANES = (
    Lane(
        name="env server",
        num_links=1,
        begin=network.start_env_servers,
        slow_disks=(FAR_DISK,),
        faults=(
            Fault(
                "kill -9 an env server", network.kill_env_server, may_error=True, tells="cannot be reached"
            ),
            Fault(
                "network of an env server cut for 30 s",
                network.cut_env_server,
                lasts_s=CUT_OFF_S,
                may_error=True,
                tells="cannot be reached|has closed the episode",
            ),
            Fault(
                "slow disk under an env server's desktops",
                slow(lambda run: run.folder / FAR_DISK),
                lasts_s=SLOW_S,
                may_error=True,
            ),
        ),
    ),
    Lane(
        name="joined hosts",
        num_links=len(HOSTS),
        begin=network.start_joined_hosts,
        has_hosts=True,
        slow_disks=("",),
        faults=(
            Fault("kill -9 the door of hosts", killed("webapp.hosts_asgi"), tells=SIGKILL),
            Fault(
                "the door cut off for 30 s",
                network.cut(slice(None), "w.queue = 'env'"),
                lasts_s=CUT_OFF_S,
                may_error=True,
                waits=True,
            ),
            Fault("slow disk under the door", slow(lambda run: run.folder), lasts_s=SLOW_S, waits=True),
            Fault("kill -9 a joined host", network.kill_joined_host, may_error=True, tells="started anew"),
            Fault(
                "network of a joined host cut for 30 s",
                network.cut(slice(1), f"w.name like '%@{HOSTS[0]}'"),
                lasts_s=CUT_OFF_S,
                may_error=True,
            ),
            Fault(
                "slow disk of a joined host",
                slow(lambda run: run.hosts[0].data),
                lasts_s=SLOW_S,
                may_error=True,
            ),
        ),
    ),
)


@contextmanager
def ground(lane: Lane) -> Iterator[Run]:
    """The lane's installation, running, and all that its faults need of the machine. Raises NoGround."""
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="deskhand-", dir="/tmp"))
        stack.callback(lambda: shutil.rmtree(folder, ignore_errors=True) if deskhand.is_temporary else None)
        links = stack.enter_context(routed_networks(lane.num_links))
        env = {"DATABASE_URL": ""} | lane.env
        if links:
            env["DESKHAND_POLICY_ADDRESS"] = links[0].near
        cluster = None
        if lane.database == "postgresql":
            reach = {"address": links[0].near, "clients": f"{links[0].far}/32"} if links else {}
            cluster = stack.enter_context(running_cluster(**reach, is_durable=True))
            env["DATABASE_URL"] = cluster.url
        for name, megabytes in lane.disks.items():
            stack.enter_context(small_disk(folder / name, megabytes))
        for name in lane.slow_disks:
            stack.enter_context(small_ext4(folder / name, SLOW_DISK_MB))
        clock = None
        if lane.has_clock:
            clock = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="clock-"))) / "offset"
            env |= preloaded(clock)
        without = []
        if lane.has_hosts:
            env |= network.ports_of(links)
            without = ["env", "deskhost"]
        deskhand = Instance(
            data_dir=folder, slots=SLOTS, env=env, without=without, start_timeout_s=START_TIMEOUT_S
        )
        run = Run(deskhand, ExitStack(), cluster=cluster, links=links, clock=clock)
        if lane.has_hosts:
            run.hosts = stack.enter_context(_hosts(run))
        with run.stack, deskhand:
            yield run


@contextmanager
def _hosts(run: Run) -> Iterator[list[JoinedMachine]]:
    """Not yet joined; the first one's disk can be slowed."""
    with tempfile.TemporaryDirectory(prefix="dh-", dir="/tmp", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)  # desk hosts go on as another user
        hosts = network.hosts_in(Path(name), run, SLOTS)
        with small_ext4(hosts[0].data, SLOW_DISK_MB):
            yield hosts


def preloaded(clock: Path) -> dict[str, str]:
    """The environment under which the wall clock is off by what `clock` holds. Raises NoGround."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise NoGround("there is no C compiler for the stepped clock: apt-get install gcc")
    library = clock.with_name("stepped_clock.so")
    source = Path(__file__).with_name("stepped_clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", library, source], check=True)
    clock.parent.chmod(0o755)  # the desks' user reads it as well
    step_clock(clock, 0)
    return {"LD_PRELOAD": os.fspath(library), "STEPPED_CLOCK": os.fspath(clock)}
