"""A checkpoint is exported and evaluated while its experiment trains on, and another one starts from it.

Real processes throughout: dispatcher, gpu worker, trainer, policy server, env workers, X11 desktops.
"""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from transformers import AutoModelForImageTextToText

from testing import experiment_runs, watch_installation
from testing.private_installation import Instance
from testing.watch_installation import rows

pytestmark = [pytest.mark.desktop, pytest.mark.slow, pytest.mark.timeout(1500)]

PATIENCE_S = 600
wait_for = partial(watch_installation.wait_for, patience_s=PATIENCE_S)
CONFIG = {
    "model": {"path": "tiny-random"},
    "tasks": {"families": ["note"]},
    "desktops": {"num_desktops": 4, "max_turns": 2, "retries": 3},
    "sampling": {"max_completion_tokens": 8},
    "algorithm": {"group_size": 2, "groups_per_step": 1, "num_steps": 12},
    "evaluation": {"num_tasks": 0},
    "checkpoints": {"every": 1, "keep_last": 1},
}


@pytest.fixture(scope="module")
def deskhand() -> Iterator[Instance]:
    with Instance(slots=4, env_workers=1) as instance:
        instance.manage("import_tasks", "first-desk")
        yield instance


def launch(deskhand: Instance, folder: Path, name: str, **sections: dict[str, Any]) -> int:
    file = folder / f"{name}.yaml"
    merged = {key: CONFIG.get(key, {}) | sections.get(key, {}) for key in CONFIG}
    file.write_text(yaml.safe_dump(merged))
    return experiment_runs.launch(deskhand, "--config", str(file), "--name", name)


def status_of(deskhand: Instance, experiment: int) -> str:
    return rows(deskhand, f"SELECT status FROM experiments_experiment WHERE id = {experiment}")[0][0]


def finished(deskhand: Instance, experiment: int) -> bool:
    status = status_of(deskhand, experiment)
    assert status not in ("failed", "cancelled"), deskhand.manage("experiment", str(experiment))
    return status == "finished"


def test_export_evaluation_and_a_new_start_from_a_checkpoint(deskhand: Instance, tmp_path: Path) -> None:
    source = launch(deskhand, tmp_path, "source", algorithm={"num_steps": 60})
    kept = f"SELECT id, path FROM experiments_checkpointrecord WHERE experiment_id = {source}"
    wait_for("a checkpoint", lambda: rows(deskhand, f"{kept} AND step > 0"))

    asked = ("experiment", str(source))
    exported = json.loads(deskhand.manage(*asked, "export", "--checkpoint", "latest", "--dtype", "float32"))
    queued = json.loads(
        deskhand.manage(*asked, "evaluate", "--checkpoint", "latest", "--tasks", "3", "--samples", "2")
    )
    held = rows(
        deskhand,
        "SELECT c.id, c.path FROM experiments_experiment e JOIN experiments_checkpointrecord c "
        f"ON c.id = e.evaluates_id WHERE e.id = {queued['experiment']}",
    )[0]
    export = f"SELECT status, path, message FROM experiments_checkpointexport WHERE id = {exported['export']}"
    wait_for("the export", lambda: rows(deskhand, export)[0][0] in ("finished", "failed"))
    assert rows(deskhand, export)[0][0] == "finished", rows(deskhand, export)
    assert status_of(deskhand, source) == "running", "the export should not have waited for the training"

    # The one gpu worker evaluates when it is free; until then later checkpoints must not push it out.
    wait_for("the source", lambda: finished(deskhand, source))
    wait_for("the evaluation", lambda: finished(deskhand, queued["experiment"]))
    result = rows(
        deskhand,
        "SELECT num_tasks, num_samples, temperature FROM experiments_evaluation "
        f"WHERE checkpoint_id = {held[0]} ORDER BY id",
    )
    assert result == [(3, 6, 1.0), (3, 3, 0.0)]
    tasks = (
        "SELECT t.results FROM experiments_evaluationtasks t JOIN experiments_evaluation e "
        f"ON e.id = t.evaluation_id WHERE e.checkpoint_id = {held[0]} ORDER BY e.id"
    )
    for (results,), samples in zip(rows(deskhand, tasks), (2, 1), strict=True):
        found = json.loads(results)
        assert [one[1] for one in found.values()] == [samples] * 3
        groups = ", ".join(str(one[2]) for one in found.values())
        members = f"SELECT count(*) FROM trajectories_trajectory WHERE group_id IN ({groups}) AND score >= 0"
        assert rows(deskhand, members) == [(3 * samples,)]
    trained = rows(
        deskhand,
        f"SELECT count(*) FROM experiments_metricpoint WHERE experiment_id = {queued['experiment']}",
    )
    assert trained == [(0,)]

    tokens = torch.arange(3, 40)[None]
    folder = Path(rows(deskhand, export)[0][1])
    with torch.no_grad():
        ours = AutoModelForImageTextToText.from_pretrained(folder)(input_ids=tokens).logits
    assert torch.isfinite(ours).all()

    last = rows(deskhand, f"{kept} AND deleted_at IS NULL ORDER BY id DESC LIMIT 1")[0][1]
    further = launch(deskhand, tmp_path, "further", model={"path": last}, algorithm={"num_steps": 1})
    wait_for("the experiment that goes on", lambda: finished(deskhand, further))
