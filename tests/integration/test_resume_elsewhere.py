"""A gpu host is killed with its disk: another one, with a data folder of its own, goes on from the copy."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from testing import watch_installation
from testing.experiment_runs import describe, launch, status_and_step
from testing.gpu_host import GpuHost, redis_of, running
from testing.private_installation import Instance
from testing.servers.s3_server import BUCKET, S3Server, s3_server
from testing.watch_installation import rows

pytestmark = [
    pytest.mark.desktop,
    pytest.mark.slow,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(os.geteuid() != 0, reason="hosts need names of their own: root"),
]
wait_for = partial(watch_installation.wait_for, patience_s=900)
NUM_STEPS = 5
CONFIG = {
    "model": {"path": "tiny-random"},
    "tasks": {"families": ["note"]},
    "desktops": {"num_desktops": 2, "max_turns": 2},
    "sampling": {"max_completion_tokens": 8},
    "algorithm": {"group_size": 2, "groups_per_step": 1, "num_steps": NUM_STEPS},
    "evaluation": {"num_tasks": 0},
    "checkpoints": {"every": 1},
}


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[S3Server]:
    with s3_server(tmp_path / "s3") as running:
        yield running


def test_another_host_goes_on_from_the_copy_of_a_checkpoint(bucket: S3Server, tmp_path: Path) -> None:
    variables = {**bucket.environment, "DESKHAND_COPIES": f"s3://{BUCKET}/copies"}
    config = tmp_path / "config.yaml"
    config.write_text(json.dumps(CONFIG))  # JSON is YAML
    with Instance(slots=2, without=["gpu"], env=variables) as control:
        control.manage("import_tasks", "first-desk")
        query = "select step, id from experiments_checkpointrecord where copy_sha256 != '' order by step"
        redis = redis_of(control)
        with running(GpuHost("gpu-a", tmp_path / "a", control, redis)) as first:
            experiment = launch(control, "--config", str(config))
            wait_for("copies of two checkpoints", lambda: len(rows(control, query)) >= 2)
            first.kill()
        (tmp_path / "a").rename(tmp_path / "gone")
        copied = [step for step, _ in rows(control, query)]
        assert copied[-1] < NUM_STEPS, "it was killed too late to show anything"

        with running(GpuHost("gpu-b", tmp_path / "b", control, redis)):
            wait_for("the end", lambda: status_and_step(control, experiment)[0] in ("finished", "failed"))
        found = describe(control, experiment)
        assert found["status"] == "finished", found
        last = found["attempts"][-1]
        assert last["resumed_step"] == copied[-1] >= 1

        # The folder is the one that was written elsewhere, and what came after it went on from there.
        workers = rows(control, "select number, worker_name from experiments_attempt order by number")
        assert (workers[0][1].partition("@")[2], workers[-1][1].partition("@")[2]) == ("gpu-a", "gpu-b")
        log = (tmp_path / "b" / "experiments" / str(experiment) / "logs").glob(
            f"trainer-{last['number']}.log"
        )
        assert "resuming from" in next(log).read_text()
        losses = rows(
            control,
            "select step, attempt, value from experiments_metricpoint where name = 'rollout/reward_mean'"
            " order by step",
        )
        assert [step for step, _, _ in losses] == list(range(1, NUM_STEPS + 1))
        assert {step for step, attempt, _ in losses if attempt == last["number"]} == set(
            range(copied[-1] + 1, NUM_STEPS + 1)
        )
