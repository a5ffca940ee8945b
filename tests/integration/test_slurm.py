"""A real SLURM of two nodes starts a job per attempt: preempted, queued again, finished; scancel; idle."""

from __future__ import annotations

import json
import shutil
import socket
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from testing import watch_installation
from testing.experiment_runs import describe, launch
from testing.private_installation import REPOSITORY, Instance
from testing.private_slurm import MISSING, PrivateSlurm, private_slurm
from testing.watch_installation import rows
from webapp.lib.supervisor.ports import free_port

pytestmark = [
    pytest.mark.slow,
    pytest.mark.desktop,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(bool(MISSING), reason=f"SLURM is not installed: {', '.join(MISSING)}"),
]
wait_for = partial(watch_installation.wait_for, patience_s=400)
CONFIG = {
    "model": {"path": "tiny-random"},
    "tasks": {"families": ["note"]},
    "desktops": {"num_desktops": 2, "max_turns": 2, "retries": 3},
    "sampling": {"max_completion_tokens": 8},
    "algorithm": {"group_size": 2, "groups_per_step": 1, "num_steps": 8},
    "evaluation": {"num_tasks": 0},
    "checkpoints": {"every": 1, "max_restarts": 3},
}
SHARED = Path(tempfile.gettempdir()) / "deskhand-of-all-nodes"
LIVE = ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING")


@pytest.fixture(scope="module")
def slurm() -> Iterator[PrivateSlurm]:
    with private_slurm() as found:
        yield found


@pytest.fixture(scope="module")
def deskhand(slurm: PrivateSlurm) -> Iterator[Instance]:
    variables = {
        **slurm.environment,
        "DESKHAND_GPU_LAUNCHER": "slurm",
        "DESKHAND_SLURM_ARGUMENTS": "--partition=low --time=30",
        "DESKHAND_TRAIN_NETWORK": "lo",
        "DESKHAND_CHECKPOINT_DIRS": str(SHARED),
    }
    SHARED.mkdir(exist_ok=True)
    with Instance(slots=2, env_workers=1, without=["gpu"], env=variables) as instance:
        instance.manage("import_tasks", "first-desk")
        yield instance
    shutil.rmtree(SHARED)


def steps_done(deskhand: Instance) -> int:
    return rows(deskhand, "select coalesce(max(step), 0) from experiments_metricpoint")[0][0]


def begin(deskhand: Instance, folder: Path, *, steps: int = 8, hosts: int = 1) -> int:
    file = folder / "config.yaml"
    changed = {
        "algorithm": {**CONFIG["algorithm"], "num_steps": steps},
        "optimiser": {"num_hosts": hosts, "num_processes": hosts},
        "checkpoints": {**CONFIG["checkpoints"], "directory": str(SHARED) if hosts > 1 else ""},
    }
    file.write_text(json.dumps(CONFIG | changed))  # JSON is YAML
    return launch(deskhand, "--config", str(file))


def stepped(deskhand: Instance, number: int) -> bool:
    query = f"select status, step from experiments_experiment where id = {number}"
    (found,) = rows(deskhand, query)
    return found[0] == "running" and found[1] >= 1


def wait_for_status(deskhand: Instance, number: int, status: str) -> None:
    query = f"select status from experiments_experiment where id = {number}"
    wait_for(status, lambda: rows(deskhand, query)[0][0] == status)


def test_an_experiment_is_preempted_queued_again_and_finished(
    slurm: PrivateSlurm, deskhand: Instance, tmp_path: Path
):
    assert slurm.jobs(*LIVE) == []
    number = begin(deskhand, tmp_path, steps=20)  # more than it makes until SLURM takes its node
    wait_for("a step in a job", lambda: steps_done(deskhand) >= 1)
    urgent = ("--partition=high", "--nodes=2", "--exclusive", "--output=/dev/null", "--wrap=sleep 25")
    slurm.run("sbatch", *urgent)
    wait_for("the job to be preempted", lambda: slurm.jobs("PREEMPTED"))
    waiting = wait_for("the next one's reason", lambda: _reason(deskhand, number))
    assert "PENDING" in waiting
    wait_for("the end", lambda: describe(deskhand, number)["status"] in ("finished", "failed"))
    described = describe(deskhand, number)
    assert described["status"] == "finished", described["message"]
    first, *_, last = described["attempts"]
    assert first["status"] in ("paused", "crashed", "lost", "cancelled")
    assert last["status"] == "finished"
    wait_for("an idle cluster", lambda: not slurm.jobs(*LIVE))


def test_pause_and_cancel_end_the_job_with_a_checkpoint(
    slurm: PrivateSlurm, deskhand: Instance, tmp_path: Path
):
    number = begin(deskhand, tmp_path, steps=60)
    wait_for("a step in a job", lambda: stepped(deskhand, number))
    deskhand.manage("experiment", str(number), "pause")
    wait_for_status(deskhand, number, "paused")
    wait_for("an idle cluster", lambda: not slurm.jobs(*LIVE))
    deskhand.manage("experiment", str(number), "resume")
    wait_for("a further step", lambda: stepped(deskhand, number))
    deskhand.manage("experiment", str(number), "cancel")
    wait_for_status(deskhand, number, "cancelled")
    first, second = describe(deskhand, number)["attempts"]
    assert (first["status"], second["status"]) == ("paused", "cancelled")
    assert second["resumed_step"] >= 1
    wait_for("an idle cluster", lambda: not slurm.jobs(*LIVE))


def test_a_time_limit_saves_a_checkpoint_and_the_next_job_goes_on(
    slurm: PrivateSlurm, deskhand: Instance, tmp_path: Path
):
    number = begin(deskhand, tmp_path, steps=60)
    wait_for("a step in a job", lambda: stepped(deskhand, number))
    job = slurm.jobs("RUNNING")[0].partition("|")[0]
    slurm.run("scontrol", "update", f"JobId={job}", "TimeLimit=1")
    wait_for("the next attempt", lambda: len(describe(deskhand, number)["attempts"]) > 1)
    first, second = describe(deskhand, number)["attempts"][:2]
    assert first["status"] == "paused"
    assert second["resumed_step"] >= 1
    deskhand.manage("experiment", str(number), "cancel")
    wait_for_status(deskhand, number, "cancelled")
    wait_for("an idle cluster", lambda: not slurm.jobs(*LIVE))


def test_two_nodes_train_as_one_job(slurm: PrivateSlurm, deskhand: Instance, tmp_path: Path):
    number = begin(deskhand, tmp_path, steps=2, hosts=2)
    query = f"select status from experiments_experiment where id = {number}"
    wait_for("the end", lambda: rows(deskhand, query)[0][0] in ("finished", "failed", "paused"))
    described = describe(deskhand, number)
    assert described["status"] == "finished", described["message"]
    (attempt,) = described["attempts"]
    leader, other = attempt["workers"]
    assert other == f"{leader}-n1"
    wait_for("an idle cluster", lambda: not slurm.jobs(*LIVE))


def _reason(deskhand: Instance, number: int) -> str:
    query = f"select message from experiments_experiment where id = {number} and status = 'queued'"
    found = rows(deskhand, query)
    return found[0][0] if found and "PENDING" in found[0][0] else ""


def test_scancel_saves_a_checkpoint_and_pauses(slurm: PrivateSlurm, deskhand: Instance, tmp_path: Path):
    number = begin(deskhand, tmp_path)
    wait_for("a running attempt", lambda: describe(deskhand, number)["status"] == "running")
    slurm.run("scancel", slurm.jobs("RUNNING")[0].partition("|")[0])
    wait_for("a pause", lambda: describe(deskhand, number)["status"] == "paused")
    assert "was ended in the cluster (CANCELLED" in describe(deskhand, number)["message"]
    wait_for("an idle cluster", lambda: not slurm.jobs(*LIVE))


def test_env_hosts_come_and_go_as_an_array(slurm: PrivateSlurm, tmp_path: Path):
    port, address = str(free_port()), own_address()
    here = dict.fromkeys(("DESKHAND_HOSTS_ADDRESS", "DESKHAND_POLICY_ADDRESS"), address)
    with Instance(without=["env", "deskhost"], env={**here, "DESKHAND_HOSTS_PORT": port}) as server:
        server.manage("import_tasks", "first-desk")
        token = tmp_path / "token"
        token.write_text(server.manage("invite_hosts", "--roles", "env", "--hosts", "2"))
        array = submit_env_hosts(slurm, tmp_path, f"https://{address}:{port}", token)
        number = begin(server, tmp_path, steps=40)
        wait_for("a step on one host", lambda: stepped(server, number))
        assert len(hosts_of(server)) == 1
        slurm.run("scontrol", "update", f"JobId={array}", "ArrayTaskThrottle=2")
        wait_for("trajectories on two hosts", lambda: len(hosts_of(server)) == 2)
        slurm.run("scancel", f"{array}_0")
        wait_for("the end", lambda: describe(server, number)["status"] in ("finished", "failed"))
        assert describe(server, number)["status"] == "finished"
        twice = "select group_id, member from trajectories_trajectory where score is not null"
        assert rows(server, f"{twice} group by 1, 2 having count(*) > 1") == []
        slurm.run("scancel", array)
        wait_for("an idle cluster", lambda: not slurm.jobs(*LIVE))
    assert not list(slurm.folder.glob("env-*")), "each removed its folder"


def own_address() -> str:
    """One by which hosts come: not this machine's loopback."""
    found = [one for addresses in psutil.net_if_addrs().values() for one in addresses]
    named = [one.address for one in found if one.family == socket.AF_INET]
    return next(address for address in named if not address.startswith("127."))


def submit_env_hosts(slurm: PrivateSlurm, folder: Path, server: str, token: Path) -> str:
    """One at a time; the number of the array."""
    variables = {
        "DESKHAND_HOME": REPOSITORY,
        "SERVER": server,
        "TOKEN_FILE": token,
        "SLOTS": 1,
        "TMPDIR": slurm.folder,
    }
    exported = ",".join(["PATH", "HOME", *(f"{name}={value}" for name, value in variables.items())])
    stand_in = ("--cpus-per-task=1", "--mem=0", "--time=30", f"--output={folder}/%a.log")
    script = REPOSITORY / "deploy" / "slurm" / "env-hosts.sbatch"
    said = slurm.run("sbatch", "--parsable", "--array=0-1%1", f"--export={exported}", *stand_in, str(script))
    return said.strip()


def hosts_of(server: Instance) -> set[str]:
    """Those that a trajectory was scored on."""
    found = "select distinct w.host from trajectories_trajectory t join fleet_worker w on w.id = t.worker_id"
    return {host for (host,) in rows(server, f"{found} where t.score is not null")}
