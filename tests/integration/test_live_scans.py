"""Scans follow an experiment that trains: the real dispatcher reads what ends, until the experiment has."""

import json
from pathlib import Path

import pytest
import yaml

from testing import experiment_runs
from testing.openai_server import KEY, openai_server
from testing.private_installation import Instance
from testing.watch_installation import rows, wait_for
from tests.integration.test_notifications import signed_in
from training.outgoing.secret_grants import add_grant

pytestmark = [pytest.mark.desktop, pytest.mark.slow, pytest.mark.timeout(1500)]

CONFIG = {
    "model": {"path": "tiny-random"},
    "tasks": {"families": ["note"]},
    "desktops": {"num_desktops": 2, "max_turns": 2, "retries": 3},
    "sampling": {"max_completion_tokens": 8},
    "algorithm": {"group_size": 2, "groups_per_step": 1, "num_steps": 8},
    "evaluation": {"num_tasks": 0},
}
QUESTION = {"kind": "model", "question": "Did it pretend?", "model": "judge", "secret": "model-key"}
ENDED = "SELECT count(*) FROM trajectories_trajectory WHERE score >= 0 AND purpose = 'train'"
SCANS = "SELECT id, status, num_read, message FROM scanners_scan ORDER BY id"


def test_a_pattern_and_a_model_follow_a_training_experiment(tmp_path: Path) -> None:
    file, log = tmp_path / "config.yaml", tmp_path / "requests.jsonl"
    file.write_text(yaml.safe_dump(CONFIG))
    env = {"DESKHAND_SECRET_MODEL_KEY": KEY}
    with openai_server(log) as url, Instance(slots=2, env_workers=1, env=env) as instance:
        instance.manage("import_tasks", "first-desk")
        api = signed_in(instance)
        (team,) = rows(instance, "SELECT name FROM accounts_team")[0]
        add_grant(instance.folder / "secrets", secret="model-key", team=team, urls=[url])
        body = {"name": "pretend", "definition": QUESTION | {"url": url}}
        api.post("/api/v1/scanners", json=body).raise_for_status()
        experiment = experiment_runs.launch(instance, "--config", str(file), "--name", "followed")
        for scanner in ("garbled-text.v1", "pretend.v1"):
            body = {"slice": f"train-{experiment}", "is_live": True, "max_read": 100}
            api.post(f"/api/v1/scanners/{scanner}/scans", json=body).raise_for_status()

        def both_ended() -> bool:
            return all(status in ("finished", "failed") for _, status, _, _ in rows(instance, SCANS))

        wait_for("both to end with the experiment", both_ended, patience_s=900)
        ((ended,),) = rows(instance, ENDED)
        scans = rows(instance, SCANS)
        findings = rows(instance, "SELECT scan_id, count(*) FROM scanners_finding GROUP BY scan_id")
    assert [(status, num, message) for _, status, num, message in scans] == [("finished", ended, "")] * 2
    assert dict(findings) == {pk: ended for pk, *_ in scans}
    asked = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(asked) == ended, "each transcript was asked about once"
