"""An experiment on a real PostgreSQL and Redis where each process has no more than its role's rights."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from testing import watch_installation
from testing.experiment_runs import describe, launch
from testing.gpu_host import redis_of
from testing.private_installation import REPOSITORY, Instance
from testing.private_postgres import Cluster, running_cluster
from testing.watch_installation import rows

pytestmark = [pytest.mark.slow, pytest.mark.desktop, pytest.mark.postgres, pytest.mark.timeout(900)]
wait_for = partial(watch_installation.wait_for, patience_s=400)
WORKER = ("-m", "celery", "-q", "-A", "workers.app", "worker", "--without-gossip", "--without-mingle")
CONFIG = {
    "model": {"path": "tiny-random"},
    "tasks": {"families": ["note"]},
    "desktops": {"num_desktops": 2, "max_turns": 2, "retries": 3},
    "sampling": {"max_completion_tokens": 8},
    "algorithm": {"group_size": 2, "groups_per_step": 1, "num_steps": 3},
    "evaluation": {"num_tasks": 2},
    "checkpoints": {"every": 1},
}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with running_cluster() as found:
        yield found


def as_role(cluster: Cluster, role: str) -> str:
    return cluster.url.replace("deskhand@", f"deskhand_{role}:pw@")


@pytest.fixture
def deskhand(cluster: Cluster, tmp_path: Path) -> Iterator[Instance]:
    """Prepared by the owner; then web, dispatcher and workers by their roles, the desk host without any."""
    passwords = {f"DESKHAND_{role}_PASSWORD": "pw" for role in ("WEB", "ENV", "GPU")}
    without = ["gpu", "env", "deskhost"]
    instance = Instance(slots=2, without=without, env={"DATABASE_URL": cluster.url, **passwords})
    with instance, ExitStack() as stack:
        instance.manage("make_roles")
        instance.stop()
        instance.env["DATABASE_URL"] = as_role(cluster, "web")
        instance.start()
        instance.env["DATABASE_URL"] = cluster.url
        instance.manage("make_roles")  # its Redis was started anew and has no `aclfile`
        instance.env["DATABASE_URL"] = as_role(cluster, "web")
        instance.manage("import_tasks", "first-desk")
        socket = str(instance.folder / "desk.sock")
        place = urlsplit(redis_of(instance)["REDIS_URL"]).netloc.rpartition("@")[2]

        def begin(name: str, *words: str, role: str = "") -> None:
            variables = dict(instance.environment)
            if role:
                variables["DATABASE_URL"] = as_role(cluster, role)
                variables["REDIS_URL"] = f"redis://deskhand_{role}:pw@{place}/0"
                variables["DESKHAND_DESKHOST_SOCKET"] = socket
            else:
                del variables["DATABASE_URL"]
            log = stack.enter_context((tmp_path / f"{name}.log").open("wb"))
            process = subprocess.Popen(
                [sys.executable, *words], env=variables, cwd=REPOSITORY, stdout=log, stderr=log
            )
            stack.callback(process.wait, 60)
            stack.callback(process.terminate)

        state = str(instance.folder / "desk")
        begin("deskhost", "-m", "workers.desktops.host", "--state-dir", state, "--socket", socket)
        wait_for("the desk host", Path(socket).exists)
        begin("env", *WORKER, "-Q", "env", "-n", "env1@%h", "--pool=threads", "-c", "2", role="env")
        begin("gpu", *WORKER, "-Q", "gpu", "-n", "gpu@%h", "--pool=solo", role="gpu")
        yield instance


def test_an_experiment_runs_to_its_end_with_least_rights(
    cluster: Cluster, deskhand: Instance, tmp_path: Path
):
    file = tmp_path / "config.yaml"
    file.write_text(json.dumps(CONFIG))  # JSON is YAML
    number = launch(deskhand, "--config", str(file))
    query = f"select status from experiments_experiment where id = {number}"
    wait_for("the end", lambda: rows(deskhand, query)[0][0] in ("finished", "failed", "paused"))
    logs = "".join(one.read_text() for one in tmp_path.glob("*.log"))
    described = describe(deskhand, number)
    assert described["status"] == "finished", described["message"] + logs[-3000:]
    assert "permission denied" not in logs + (cluster.folder / "log").read_text()
    assert "NOPERM" not in logs
    assert described["evaluations"], "an evaluation was scored"
