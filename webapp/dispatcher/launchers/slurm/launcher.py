"""One batch job per attempt. Its name carries this installation's mark; its number is its name here."""

import re
import shlex
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

from django.conf import settings

from webapp.dispatcher.launchers.contract import (
    LAST_LINES,
    LEAVE_S,
    ClusterJob,
    JobRequest,
    Launcher,
    LauncherError,
    Phase,
    installation_mark,
)

LIMIT_S = 20.0
FORMAT = "%i|%T|%r"
WAITING = frozenset({"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"})
RUNNING = frozenset({"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"})
PHASES = {
    "COMPLETED": Phase.DONE,
    "CANCELLED": Phase.STOPPED,
    "PREEMPTED": Phase.TAKEN,
    "TIMEOUT": Phase.TAKEN,
    "NODE_FAIL": Phase.TAKEN,
    "BOOT_FAIL": Phase.TAKEN,
    "REVOKED": Phase.TAKEN,
}
"""All others are failures."""
COMMAND = "exec {python} -m workers.gpu.cluster_job --job {mark}-$SLURM_JOB_ID {experiment} {attempt}"
OTHERS = """srun --nodes={others} --ntasks={others} --ntasks-per-node=1 --relative=1 sh -c {command} &
"""
"""The batch host leads; the ranks of the other nodes come to it."""


class Slurm(Launcher):
    """The cluster whose `slurm.conf` this machine has."""

    def __init__(self) -> None:
        self._mark = f"slurm-{installation_mark()}"
        self._logs = Path(settings.LOG_DIR) / "jobs"

    def check(self) -> None:
        kill_wait = kill_wait_s(_run("scontrol", "show", "config"))
        if kill_wait < settings.STOP_GRACE_S + LEAVE_S:
            raise LauncherError(
                f"DESKHAND_STOP_GRACE_S: {settings.STOP_GRACE_S} s for a checkpoint and {LEAVE_S} s to "
                f"leave are more than SLURM's KillWait of {kill_wait} s; set at most "
                f"{kill_wait - LEAVE_S}, or raise KillWait in slurm.conf"
            )

    def jobs(self) -> dict[str, ClusterJob]:
        listed = _run("squeue", "--states=all", "--noheader", f"--name={self._mark}", f"--format={FORMAT}")
        return {job.name: job for job in read_jobs(listed, self._mark)}

    def submit(self, wanted: JobRequest) -> str:
        self._logs.mkdir(parents=True, exist_ok=True)
        script = self._script(wanted)
        said = _run("sbatch", *self._arguments(wanted), *shlex.split(settings.SLURM_ARGUMENTS), text=script)
        return f"{self._mark}-{said.strip().partition(';')[0]}"

    def _script(self, wanted: JobRequest) -> str:
        command = COMMAND.format(
            python=shlex.quote(sys.executable),
            mark=self._mark,
            experiment=wanted.experiment_id,
            attempt=wanted.attempt,
        )
        others = ""
        if wanted.num_nodes > 1:
            other = shlex.quote(f"{command} --node $((SLURM_PROCID + 1))")
            others = OTHERS.format(others=wanted.num_nodes - 1, command=other)
        return f"#!/bin/sh\n{others}{command}\n"

    def _arguments(self, wanted: JobRequest) -> list[str]:
        """The operator's come behind these and win."""
        return [
            "--parsable",
            f"--job-name={self._mark}",
            f"--chdir={settings.BASE_DIR}",
            f"--output={self._logs}/{self._mark}-%j.log",
            # The next attempt is a job of its own: it goes on from the last checkpoint, on any node.
            "--no-requeue",
            f"--nodes={wanted.num_nodes}",
            "--ntasks-per-node=1",
            f"--nice={wanted.nice}",
            f"--signal=B:TERM@{settings.STOP_GRACE_S + LEAVE_S}",
            *([f"--gpus-per-node={wanted.num_gpus}"] if wanted.num_gpus else []),
        ]

    def cancel(self, names: Collection[str]) -> None:
        if names:
            _run("scancel", "--quiet", *(name.rpartition("-")[2] for name in names))

    def last_lines(self, name: str) -> str:
        try:
            text = (self._logs / f"{name}.log").read_text(errors="replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-LAST_LINES:])


def read_jobs(listed: str, mark: str) -> list[ClusterJob]:
    """What `squeue` printed in FORMAT."""
    found = []
    for line in listed.splitlines():
        number, state, reason = line.split("|", 2)
        words = state if reason == "None" else f"{state}: {reason}"
        found.append(ClusterJob(f"{mark}-{number.strip()}", phase_of(state), words))
    return found


def phase_of(state: str) -> Phase:
    """Of a state in SLURM's words."""
    if state in WAITING:
        return Phase.WAITING
    return Phase.RUNNING if state in RUNNING else PHASES.get(state, Phase.FAILED)


def kill_wait_s(config: str) -> int:
    """Seconds between SIGTERM and SIGKILL, from `scontrol show config`."""
    found = re.search(r"^KillWait\s*=\s*(\d+)", config, re.MULTILINE)
    if found is None:
        raise LauncherError("SLURM: `scontrol show config` names no KillWait")
    return int(found[1])


def _run(*command: str, text: str = "") -> str:
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    except FileNotFoundError as error:
        raise LauncherError(f"SLURM: {command[0]} is not on this machine's PATH") from error
    except subprocess.TimeoutExpired as error:
        raise LauncherError(f"SLURM: {command[0]} did not answer within {LIMIT_S:.0f} s") from error
    if done.returncode:
        raise LauncherError(f"SLURM: {command[0]}: {done.stderr.strip() or f'exit code {done.returncode}'}")
    return done.stdout
