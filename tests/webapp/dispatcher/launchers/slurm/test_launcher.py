"""What SLURM 22.05 printed on a cluster of two nodes, read."""

import pytest

from webapp.dispatcher.launchers.contract import JobRequest, LauncherError, Phase
from webapp.dispatcher.launchers.slurm import launcher as module
from webapp.dispatcher.launchers.slurm.launcher import Slurm, kill_wait_s, read_jobs

LISTED = """\
3|PENDING|Resources
5|PENDING|Resources
6|COMPLETED|None
1|CANCELLED|None
2|FAILED|NonZeroExitCode
4|RUNNING|None
7|COMPLETING|None
8|PREEMPTED|None
9|TIMEOUT|TimeLimit
"""
CONFIG = """\
KeepAliveTime           = SYSTEM_DEFAULT
KillOnBadExit           = 0
KillWait                = 30 sec
"""


def test_the_queue_is_read_with_its_own_words():
    found = {job.name: (job.phase, job.state) for job in read_jobs(LISTED, "slurm-abc")}
    assert found["slurm-abc-3"] == (Phase.WAITING, "PENDING: Resources")
    assert found["slurm-abc-4"] == (Phase.RUNNING, "RUNNING")
    assert found["slurm-abc-7"][0] == Phase.RUNNING
    assert found["slurm-abc-6"][0] == Phase.DONE
    assert found["slurm-abc-1"][0] == Phase.STOPPED
    assert found["slurm-abc-2"] == (Phase.FAILED, "FAILED: NonZeroExitCode")
    assert {found["slurm-abc-8"][0], found["slurm-abc-9"][0]} == {Phase.TAKEN}


def test_the_grace_for_a_checkpoint_has_to_fit_what_slurm_waits(settings, monkeypatch):
    assert kill_wait_s(CONFIG) == 30
    monkeypatch.setattr(module, "_run", lambda *command, text="": CONFIG)
    settings.STOP_GRACE_S = 15
    Slurm().check()
    settings.STOP_GRACE_S = 105
    with pytest.raises(LauncherError, match="DESKHAND_STOP_GRACE_S.*set at most 15, or raise KillWait"):
        Slurm().check()


def test_a_job_asks_for_what_its_placement_asks_for(settings, monkeypatch, tmp_path):
    settings.SLURM_ARGUMENTS = "--partition=gpu --time=8:00:00"
    settings.LOG_DIR = tmp_path
    called = []
    monkeypatch.setattr(module, "_run", lambda *command, text="": called.append((command, text)) or "17\n")
    slurm = Slurm()
    name = slurm.submit(JobRequest(experiment_id=7, attempt=2, num_gpus=4, nice=60))
    ((command, script),) = called
    assert name == f"{slurm._mark}-17"
    assert {"--gpus-per-node=4", "--nodes=1", "--nice=60", "--no-requeue"} <= set(command)
    assert command[-2:] == ("--partition=gpu", "--time=8:00:00")
    assert script.endswith(f"--job {slurm._mark}-$SLURM_JOB_ID 7 2\n")
    (tmp_path / "jobs" / f"{name}.log").write_text("one\ntwo\n")
    assert slurm.last_lines(name) == "one\ntwo"
    assert slurm.last_lines("slurm-none-1") == ""


def test_a_machine_without_slurm_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LauncherError, match="scontrol is not on this machine's PATH"):
        Slurm().check()
