"""What may end, move or forget a job of a real SLURM with two nodes, while it trains."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

import psutil

from benchmarks.chaos.cluster_blows import Blow
from benchmarks.chaos.product_run import Missed, Records
from testing.private_installation import Instance
from testing.private_slurm import MISSING, PrivateSlurm, private_slurm
from testing.watch_installation import processes, wait_for

SLURM = "SLURM"
SLOTS = 4
AWAY_S = 15.0
"""Without a daemon."""
URGENT_S = 20
PATIENCE_S = 300
LIVE = ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING")
MEANWHILE = 8
"""Steps that a quick machine makes while the job is not touched."""


def missing_slurm() -> str:
    return f"SLURM lacks {', '.join(MISSING)}" if MISSING else ""


@contextmanager
def slurm_site() -> Iterator[tuple[PrivateSlurm, Instance]]:
    """No worker waits for GPUs: only jobs train. None is left at the end."""
    with private_slurm() as slurm:
        variables = {
            **slurm.environment,
            "DESKHAND_GPU_LAUNCHER": "slurm",
            "DESKHAND_SLURM_ARGUMENTS": "--partition=low --time=60",
        }
        with Instance(slots=SLOTS, env_workers=1, without=["gpu"], env=variables) as deskhand:
            deskhand.manage("import_tasks", "first-desk")
            yield slurm, deskhand
            wait_for("an idle cluster", lambda: not slurm.jobs(*LIVE), patience_s=PATIENCE_S)


def blows_of_slurm(slurm: PrivateSlurm, deskhand: Instance) -> list[Blow]:
    ends = [
        ("SIGKILL to the trainer", _killer(deskhand, "training.loop.train")),
        ("SIGKILL to the job's first process", _killer(deskhand, "workers.gpu.cluster_job")),
        ("scancel, and resume", partial(_scancel, slurm, deskhand)),
        ("preempted by a job of higher priority", partial(_preempt, slurm)),
        ("node set down", partial(_node_down, slurm)),
        ("node without power", partial(_power_off, slurm, deskhand)),
    ]
    stays = [
        ("SIGKILL to slurmd", partial(_daemon, slurm, "slurmd")),
        ("SIGKILL to slurmctld", partial(_daemon, slurm, "slurmctld")),
        ("SIGKILL to the dispatcher", _killer(deskhand, "manage.py", "dispatch")),
    ]
    return [
        *(Blow(name, strike, steps=2, may_error=True) for name, strike in ends),
        *(Blow(name, strike, steps=MEANWHILE) for name, strike in stays),
    ]


def _killer(deskhand: Instance, *words: str) -> Callable[[Records], str]:
    """All processes that these words name, at once."""

    def strike(_: Records) -> str:
        found = processes(deskhand, *words)
        if not found:
            raise Missed(f"no process of {' '.join(words)}")
        for process in found:
            process.kill()
        if psutil.wait_procs(found, timeout=10)[1]:
            raise Missed("it lives")
        return f"pid {', '.join(str(process.pid) for process in found)} gone"

    return strike


def _running(slurm: PrivateSlurm) -> str:
    """The number of the job."""
    if not (found := slurm.jobs("RUNNING")):
        raise Missed("no job is running")
    return found[0].partition("|")[0]


def _node_of(slurm: PrivateSlurm, job: str) -> str:
    return slurm.run("squeue", "--noheader", f"--jobs={job}", "--format=%N").strip()


def _wait_gone(slurm: PrivateSlurm, job: str) -> str:
    """What became of it."""

    def ended() -> str:
        state = slurm.run("squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T").strip()
        return "" if state in LIVE else state or "forgotten"

    return str(wait_for("the job's end", ended, patience_s=PATIENCE_S))


def _scancel(slurm: PrivateSlurm, deskhand: Instance, records: Records) -> str:
    """As the cluster's operator does: the experiment is paused, and goes on when a person says so."""
    job = _running(slurm)
    slurm.run("scancel", job)
    state = _wait_gone(slurm, job)
    wait_for("the pause", lambda: records.progress().status == "paused", patience_s=PATIENCE_S)
    deskhand.manage("experiment", str(records.experiment), "resume")
    return f"job {job} {state}, paused, resumed"


def _preempt(slurm: PrivateSlurm, _: Records) -> str:
    job = _running(slurm)
    urgent = (
        "--partition=high",
        "--nodes=2",
        "--exclusive",
        "--output=/dev/null",
        f"--wrap=sleep {URGENT_S}",
    )
    slurm.run("sbatch", *urgent)
    state = _wait_gone(slurm, job)
    if state != "PREEMPTED":
        raise Missed(f"job {job} is {state}")
    return f"job {job} {state}"


def _node_down(slurm: PrivateSlurm, _: Records) -> str:
    job = _running(slurm)
    node = _node_of(slurm, job)
    slurm.run("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=chaos")
    try:
        return f"{node} down, job {job} {_wait_gone(slurm, job)}"
    finally:
        slurm.run("scontrol", "update", f"NodeName={node}", "State=RESUME")


def _power_off(slurm: PrivateSlurm, deskhand: Instance, _: Records) -> str:
    """All of the job and its node's daemon at once; the daemon comes back."""
    job = _running(slurm)
    node = _node_of(slurm, job)
    daemon = psutil.Process(_pid(slurm, f"slurmd-{node}"))
    steps = [one for one in psutil.process_iter() if _is_step(one, job)]
    lost = [daemon, *steps, *(child for step in steps for child in step.children(recursive=True))]
    for process in lost:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(lost, timeout=10)
    if processes(deskhand, "training.loop.train"):
        raise Missed("the trainer lives")
    time.sleep(AWAY_S)
    slurm.run("slurmd", "-N", node)
    return f"{len(lost)} processes of {node} gone, job {job} {_wait_gone(slurm, job)}"


def _is_step(process: psutil.Process, job: str) -> bool:
    """Its first process renames itself."""
    try:
        return f"slurmstepd: [{job}." in " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return False


def _daemon(slurm: PrivateSlurm, program: str, _: Records) -> str:
    """The job outlives it."""
    job = _running(slurm)
    words = ("-N", _node_of(slurm, job)) if program == "slurmd" else ()
    name = "-".join((program, *words[1:]))
    pid = _pid(slurm, name)
    os.kill(pid, signal.SIGKILL)
    time.sleep(AWAY_S)
    if psutil.pid_exists(pid):
        raise Missed(f"{program} lives")
    slurm.run(program, *words)
    wait_for(
        "its answer", lambda: _pid(slurm, name) not in (0, pid) and _answers(slurm), patience_s=PATIENCE_S
    )
    if _running(slurm) != job:
        raise Missed(f"job {job} ended")
    return f"{name} away for {AWAY_S:.0f} s, job {job} runs on"


def _pid(slurm: PrivateSlurm, name: str) -> int:
    """0 while the daemon writes the file."""
    return int((slurm.folder / f"{name}.pid").read_text() or 0)


def _answers(slurm: PrivateSlurm) -> bool:
    try:
        return bool(slurm.jobs(*LIVE))
    except subprocess.SubprocessError:
        return False
