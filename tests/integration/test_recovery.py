"""Everything that can die dies once while an experiment runs; nothing recorded is lost and it finishes.

Real processes throughout: supervisor, Redis, web, dispatcher, desk host, Celery workers, trainer,
policy server, X11 desktops. SIGKILL each time, so nobody can say goodbye.
"""

import json
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from testing import watch_installation
from testing.experiment_runs import describe, launch, status_and_step
from testing.private_installation import Instance
from testing.watch_installation import processes, rows
from webapp.trajectories.frame_files.names import frame_path

pytestmark = [pytest.mark.desktop, pytest.mark.postgres, pytest.mark.timeout(600)]

PATIENCE_S = 120
wait_for = partial(watch_installation.wait_for, patience_s=PATIENCE_S)
NUM_STEPS = 14
CONFIG = {
    "model": {"path": "tiny-random"},
    "tasks": {"families": ["note"]},
    "desktops": {"num_desktops": 4, "max_turns": 2, "retries": 3},
    "sampling": {"max_completion_tokens": 8},
    "algorithm": {"group_size": 2, "groups_per_step": 1, "num_steps": NUM_STEPS},
    "evaluation": {"num_tasks": 0},
    "checkpoints": {"every": 1, "max_restarts": 3},
}


@pytest.fixture(scope="module")
def deskhand() -> Iterator[Instance]:
    with Instance(slots=4) as instance:
        instance.manage("import_tasks", "first-desk")
        yield instance


def kill_one(deskhand: Instance, *words: str) -> None:
    victim = wait_for(f"a process with {words}", lambda: processes(deskhand, *words))[-1]
    os.kill(victim.pid, signal.SIGKILL)


def steps_done(deskhand: Instance) -> int:
    return rows(deskhand, "select coalesce(max(step), 0) from experiments_metricpoint")[0][0]


def wait_for_more_steps(deskhand: Instance, after: str) -> None:
    known = steps_done(deskhand)
    wait_for(f"another step after {after}", lambda: steps_done(deskhand) > known)


def test_an_experiment_survives_the_death_of_each_process(deskhand: Instance, tmp_path: Path) -> None:
    config = tmp_path / "recovery.yaml"
    config.write_text(json.dumps(CONFIG))  # JSON is YAML
    experiment = launch(deskhand, "--config", str(config))

    wait_for_more_steps(deskhand, "launch")
    kill_one(deskhand, "training.loop.train", "--output", "-m training.loop.train --config")
    attempts = f"select count(*) from experiments_attempt where experiment_id = {experiment}"
    wait_for("a second attempt", lambda: rows(deskhand, attempts) == [(2,)])
    wait_for_more_steps(deskhand, "the trainer's death")

    kill_one(deskhand, "celery", "-Q env")
    wait_for_more_steps(deskhand, "an env worker's death")

    kill_one(deskhand, "bwrap")
    wait_for_more_steps(deskhand, "a desktop's death")

    kill_one(deskhand, "uvicorn", "webapp.asgi")
    wait_for("the web process", lambda: answers(f"{deskhand.url}/healthz"))
    wait_for_more_steps(deskhand, "the web process' death")

    kill_one(deskhand, "redis-server")
    wait_for_more_steps(deskhand, "the death of Redis")

    wait_for("the end", lambda: status_and_step(deskhand, experiment)[0] in ("finished", "failed"))
    check_nothing_is_lost(deskhand, describe(deskhand, experiment))


def answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=2, trust_env=False).is_success
    except httpx.TransportError:
        return False


def check_nothing_is_lost(deskhand: Instance, described: dict[str, Any]) -> None:
    assert described["status"] == "finished", described["message"]
    messages = " ".join(incident["message"] for incident in described["incidents"])
    assert "Attempt 1: rank 0 of the trainer was ended by SIGKILL" in messages
    steps = rows(
        deskhand, "select step from experiments_metricpoint where name = 'rollout/reward_mean' order by step"
    )
    assert [step for (step,) in steps] == list(range(1, NUM_STEPS + 1))
    scored = rows(deskhand, "select count(*) from trajectories_trajectory where reward is not null")
    assert scored[0][0] >= NUM_STEPS * CONFIG["algorithm"]["group_size"]
    scored_errors = rows(
        deskhand,
        "select count(*) from trajectories_trajectory where status = 'errored' and reward is not null",
    )
    assert scored_errors == [(0,)]
    unfinished = rows(
        deskhand,
        "select id, status from trajectories_trajectory"
        " where status not in ('terminated', 'truncated', 'errored', 'cancelled')",
    )
    assert unfinished == []
    lost_frames = [
        sha
        for (sha,) in rows(deskhand, "select distinct frame from trajectories_turnrecord where frame != ''")
        if not (deskhand.folder / "media" / frame_path(sha)).exists()
    ]
    assert lost_frames == []


def test_pausing_gives_the_worker_back_and_resuming_goes_on(deskhand: Instance, tmp_path: Path) -> None:
    config = tmp_path / "pause.yaml"
    endless = {
        **CONFIG,
        "algorithm": {**CONFIG["algorithm"], "num_steps": 1000},
    }  # it must not finish meanwhile
    config.write_text(json.dumps(endless))
    experiment = launch(deskhand, "--config", str(config))
    wait_for("the first step", lambda: status_and_step(deskhand, experiment)[1] >= 1)
    deskhand.manage("experiment", str(experiment), "pause")
    wait_for("the pause", lambda: status_and_step(deskhand, experiment)[0] == "paused")
    _, paused_at = status_and_step(deskhand, experiment)
    assert not processes(deskhand, "training.loop.train")
    assert not processes(deskhand, "training.sampler.server")
    deskhand.manage("experiment", str(experiment), "resume")
    wait_for("a step after resuming", lambda: status_and_step(deskhand, experiment)[1] > paused_at)
    deskhand.manage("experiment", str(experiment), "cancel")
    wait_for("the cancel", lambda: status_and_step(deskhand, experiment)[0] == "cancelled")
    assert not processes(deskhand, "training.loop.train")
    wait_for(
        "every trajectory to be final",
        lambda: (
            not rows(
                deskhand,
                "select id from trajectories_trajectory"
                " where status not in ('terminated', 'truncated', 'errored', 'cancelled')",
            )
        ),
    )
