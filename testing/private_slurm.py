"""A real SLURM on this machine: a controller and two nodes, each with two stand-ins for GPUs."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from testing.watch_installation import wait_for
from webapp.lib.supervisor.ports import free_port

PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "squeue", "scancel")
MISSING = [name for name in PROGRAMS if shutil.which(name) is None]
"""Debian: `apt install slurm-wlm munge`."""
PLACES = f"{os.environ.get('PATH', '')}:/usr/sbin"
UP_WITHIN_S = 60
ENDED_WITHIN_S = 10
CONFIG = """
ClusterName=deskhand-test
SlurmctldHost={host}
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CryptoType=crypto/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
SchedulerParameters=sched_interval=2,bf_interval=2
KillWait={kill_wait}
MinJobAge=300
GresTypes=gpu
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName=desk1 NodeHostname={host} NodeAddr=127.0.0.1 Port={first} CPUs=1 Gres=gpu:2 State=UNKNOWN
NodeName=desk2 NodeHostname={host} NodeAddr=127.0.0.1 Port={second} CPUs=1 Gres=gpu:2 State=UNKNOWN
PartitionName=low Nodes=desk[1-2] Default=YES MaxTime=60 State=UP PriorityTier=1
PartitionName=high Nodes=desk[1-2] MaxTime=60 State=UP PriorityTier=10
"""


@dataclass(frozen=True, slots=True)
class PrivateSlurm:
    """Its folder, which holds `slurm.conf`."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """For a process that uses it."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": PLACES}

    def run(self, *command: str) -> str:
        """One of SLURM's programs; what it printed."""
        environment = {**os.environ, **self.environment}
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=60, check=True
        )
        return done.stdout

    def jobs(self, *states: str) -> list[str]:
        """`NUMBER|STATE|REASON` of jobs in these states."""
        listed = self.run("squeue", "--noheader", f"--states={','.join(states)}", "--format=%i|%T|%r")
        return listed.splitlines()


@contextmanager
def private_slurm(kill_wait: int = 30) -> Iterator[PrivateSlurm]:
    """Started, and ended with all its jobs."""
    folder = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))
    folder.chmod(0o755)
    (folder / "state").mkdir()
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(1024))
    key.chmod(0o400)
    host = socket.gethostname().partition(".")[0]
    ports = {"port": free_port(), "first": free_port(), "second": free_port()}
    user = "root" if os.geteuid() == 0 else os.environ["USER"]
    text = CONFIG.format(host=host, folder=folder, user=user, kill_wait=kill_wait, **ports)
    (folder / "slurm.conf").write_text(text)
    (folder / "gres.conf").write_text("NodeName=desk[1-2] Name=gpu File=/dev/null,/dev/zero\n")
    found = PrivateSlurm(folder)
    try:
        files = {name: f"--{name}-file={folder}/munge.{name}" for name in ("key", "pid", "log", "seed")}
        found.run("munged", "--force", f"--socket={folder}/munge.sock", *files.values())
        found.run("slurmctld")
        found.run("slurmd", "-N", "desk1")
        found.run("slurmd", "-N", "desk2")
        _wait_until_idle(found)
        yield found
    finally:
        for file in sorted(folder.glob("*.pid")):
            _end(file)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_until_idle(slurm: PrivateSlurm) -> None:
    states = partial(slurm.run, "sinfo", "--noheader", "--partition=low", "--format=%D %T")
    report = partial(slurm.run, "sinfo", "--long")
    wait_for(report, lambda: states().split() == ["2", "idle"], patience_s=UP_WITHIN_S)


def _end(file: Path) -> None:
    """A daemon and, with it, what it wrote last."""
    try:
        pid = int(file.read_text())
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + ENDED_WITHIN_S
        while time.monotonic() < deadline:
            os.kill(pid, 0)
            time.sleep(0.1)
    except (ValueError, ProcessLookupError):
        return
