"""Hosts with neither database nor Redis: one with desktops, one that trains, in networks of their own."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from testing.experiment_runs import FINAL, describe, launch
from testing.joined_machine import JoinedMachine, processes_of
from testing.linked_network import Network
from testing.private_installation import Instance
from testing.routed_networks import routed_networks
from testing.small_disk import NoGround
from testing.two_gpu_hosts import STEP, rows, wait_for
from webapp.lib.supervisor.ports import free_port

pytestmark = [
    pytest.mark.desktop,
    pytest.mark.slow,
    pytest.mark.network,
    pytest.mark.postgres,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(os.geteuid() != 0, reason="hosts need networks of their own: root"),
]
NUM_STEPS = 5
CONFIG = {
    "model": {"path": "tiny-random"},
    "tasks": {"families": ["note"]},
    "desktops": {"num_desktops": 2, "max_turns": 2},
    "sampling": {"max_completion_tokens": 8},
    "sft": {"enabled": True, "demonstrations_per_family": 2, "batch_size": 2, "max_steps": 4},
    "algorithm": {"group_size": 2, "groups_per_step": 1, "num_steps": NUM_STEPS, "skip_zero_variance": False},
    "evaluation": {"num_tasks": 2},
    "checkpoints": {"every": 1},
}


@pytest.fixture
def links() -> Iterator[list[Network]]:
    try:
        with routed_networks(2) as made:
            yield made
    except NoGround as missing:
        pytest.skip(str(missing))


@pytest.fixture
def control(links: list[Network], tmp_path: Path) -> Iterator[Instance]:
    """Without workers; its database and Redis listen where hosts do not reach them."""
    own = {"DESKHAND_HOSTS_ADDRESS": links[0].near, "DESKHAND_HOSTS_PORT": str(free_port())}
    with Instance(without=["gpu", "env", "deskhost"], env=own) as instance:
        instance.manage("import_tasks", "first-desk")
        yield instance


@pytest.fixture
def hosts(links: list[Network], control: Instance, tmp_path: Path) -> Iterator[list[JoinedMachine]]:
    tmp_path.chmod(0o755)
    with ExitStack() as stack:
        made = []
        for role, link in zip(("env", "gpu"), links, strict=True):
            folder = tmp_path / role
            folder.mkdir(mode=0o755)
            machine = JoinedMachine(
                f"far-{role}", link, folder, control, roles=role,
                variables={"DESKHAND_POLICY_ADDRESS": link.far, "DESKHAND_CPU_PLACES": "1"},
            )  # fmt: skip
            machine.join()
            stack.callback(machine.stop)
            machine.start()
            made.append(machine)
        yield made


def test_an_experiment_runs_on_hosts_that_joined_and_outlives_a_killed_one(
    control: Instance, hosts: list[JoinedMachine], tmp_path: Path
) -> None:
    _, gpu_host = hosts
    file = tmp_path / "config.yaml"
    file.write_text(json.dumps(CONFIG))  # JSON is YAML
    experiment = launch(control, "--config", str(file), "--anyway")

    def steps() -> list[tuple[int, int]]:
        query = f"select step, attempt from experiments_metricpoint where name = '{STEP}'"
        return rows(control, f"{query} and experiment_id = {experiment} order by step")

    wait_for("the first step", lambda: bool(steps()))
    web = [one for one in processes_of(control.folder) if "--ssl-certfile" in one.cmdline()]
    assert web
    for process in web:
        process.send_signal(signal.SIGSTOP)
    try:
        signal.sigtimedwait([], 20)
    finally:
        for process in web:
            process.send_signal(signal.SIGCONT)
    wait_for("the second step", lambda: len(steps()) >= 2)
    gpu_host.kill()
    gpu_host.start()

    def status() -> str:
        return rows(control, f"select status from experiments_experiment where id = {experiment}")[0][0]

    wait_for("its end", lambda: status() in FINAL)
    found = describe(control, experiment)
    assert found["status"] == "finished", found
    reported = steps()
    assert [step for step, _ in reported] == list(range(1, NUM_STEPS + 1))
    assert [one["status"] for one in found["attempts"]] == ["lost", "finished"]
    assert {name for one in found["attempts"] for name in one["workers"]} == {"gpu1@far-gpu"}
    scored_twice = rows(
        control,
        "select group_id, member from trajectories_trajectory where status in ('terminated', 'truncated')"
        f" and experiment_id = {experiment} group by group_id, member having count(*) > 1",
    )
    assert scored_twice == []
    logs = control.folder / "experiments" / str(experiment) / "logs"
    for name in ("trainer-1.log", "policy-1.log", "trainer-2.log", "policy-2.log"):
        assert (logs / name).stat().st_size > 0, name
    keys = {
        (folder / "secrets" / "django_secret_key").read_text() for folder in (control.folder, gpu_host.data)
    }
    assert len(keys) == 2, "a host's own"
    assert [one.name for one in gpu_host.data.glob("*.sqlite3")] == ["spool.sqlite3"]
    refused = rows(control, "select num_refused from fleet_joinedhost")
    assert refused == [(0,), (0,)]
