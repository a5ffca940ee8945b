"""Four real gpu workers on one data folder share a host's places: 2 + 2 + 4 run, the next one waits."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from testing import watch_installation
from testing.experiment_runs import describe, launch
from testing.private_installation import Instance
from testing.watch_installation import rows

pytestmark = [pytest.mark.desktop, pytest.mark.slow, pytest.mark.timeout(900)]
wait_for = partial(watch_installation.wait_for, patience_s=400)
ACTIVE = (
    "select id, placed_worker, placed_keys from experiments_experiment "
    "where status in ('starting', 'running')"
)


@pytest.fixture(scope="module")
def deskhand() -> Iterator[Instance]:
    env = {"DESKHAND_CPU_PLACES": "8"}
    without = ["web", "deskhost", "env"]
    with Instance(gpu_workers=4, without=without, env=env) as instance:
        instance.manage("import_tasks", "first-desk")
        yield instance


def queue(deskhand: Instance, folder: Path, processes: int) -> int:
    config = {
        "model": {"path": "tiny-random"},
        "tasks": {"families": ["note"]},
        "algorithm": {"group_size": 4, "groups_per_step": 2, "num_steps": 2},
        "evaluation": {"num_tasks": 0},
        "optimiser": {"num_processes": processes},
    }
    path = folder / f"{processes}.yaml"
    path.write_text(json.dumps(config))  # JSON is YAML
    return launch(deskhand, "--config", str(path))


def children_of(deskhand: Instance, experiment: int) -> set[int]:
    """Process ids of the policy server that an experiment's worker started."""
    named = f"experiments/{experiment}/config.yaml"
    return {
        process.pid
        for process in psutil.process_iter()
        if "training.sampler.server" in (line := " ".join(_line(process)))
        and str(deskhand.folder) in line
        and named in line
    }


def _line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_two_two_and_four_share_a_host_and_no_worker_ends_what_another_runs(
    deskhand: Instance, tmp_path: Path
) -> None:
    first = [queue(deskhand, tmp_path, processes) for processes in (2, 2, 4)]
    wait_for("three experiments at once", lambda: len(rows(deskhand, ACTIVE)) == 3)
    held = {pk: (worker, json.loads(keys)) for pk, worker, keys in rows(deskhand, ACTIVE)}
    assert set(held) == set(first)
    assert sorted(len(keys) for _, keys in held.values()) == [2, 2, 4]
    assert len({key for _, keys in held.values() for key in keys}) == 8
    assert len({worker for worker, _ in held.values()}) == 3

    late = queue(deskhand, tmp_path, 1)
    assert describe(deskhand, late)["status"] == "queued"

    # The fourth worker ends and comes back: what the other three run is not its to sweep.
    running = {pk: wait_for("its policy server", partial(children_of, deskhand, pk)) for pk in first}
    busy = {worker.partition("@")[0] for worker, _ in held.values()}
    (idle,) = {f"gpu{number}" for number in range(1, 5)} - busy
    (victim,) = [
        p for p in psutil.process_iter() if f"{idle}@%h" in _line(p) and "celery" in " ".join(_line(p))
    ]
    os.kill(victim.pid, signal.SIGKILL)
    query = f"select pid from fleet_worker where name like '{idle}@%'"
    wait_for("the idle worker again", lambda: rows(deskhand, query)[0][0] != victim.pid)
    assert {pk: children_of(deskhand, pk) for pk in first} == running

    deskhand.manage("experiment", str(first[0]), "cancel")
    wait_for("the late one", lambda: late in {pk for pk, _, _ in rows(deskhand, ACTIVE)})
