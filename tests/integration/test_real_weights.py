"""A published language model reads the widgets of real windows and goes through the whole product."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

from testing import experiment_runs
from testing.paths import REPOSITORY
from testing.private_installation import Instance
from testing.watch_installation import rows, wait_for

pytestmark = [pytest.mark.desktop, pytest.mark.slow, pytest.mark.timeout(5400)]

READ = (
    "SELECT t.source, t.observation_text FROM trajectories_turnrecord t "
    "JOIN trajectories_trajectory j ON j.id = t.trajectory_id WHERE j.purpose IN ('demonstration', 'train')"
)


def test_smollm2_trains_on_text_is_evaluated_and_leaves_as_a_plain_folder() -> None:
    with Instance(slots=2, env_workers=1) as deskhand:
        script = str(REPOSITORY / "scripts" / "fetch_smollm2.py")
        environment = os.environ | {"DESKHAND_DATA_DIR": str(deskhand.folder)}
        subprocess.run([sys.executable, script], env=environment, check=True)
        deskhand.manage("import_tasks", "smoldesk")
        number = experiment_runs.launch(deskhand, "--preset", "smoldesk-smoke")
        found = experiment_runs.follow(deskhand, number, 4500, "sft/loss", "rollout/reward_mean")
        assert found["status"] == "finished", found
        read = rows(deskhand, READ)
        asked = json.loads(
            deskhand.manage(
                "experiment", str(number), "export", "--checkpoint", "latest", "--dtype", "float32"
            )
        )
        query = f"SELECT status, path, message FROM experiments_checkpointexport WHERE id = {asked['export']}"
        wait_for("the export", lambda: rows(deskhand, query)[0][0] in ("finished", "failed"), patience_s=600)
        ((status, path, message),) = rows(deskhand, query)
        assert (status, message) == ("finished", "")
        model = AutoModelForCausalLM.from_pretrained(path)
        assert AutoTokenizer.from_pretrained(path).chat_template
        assert "AutoModelForCausalLM" in (Path(path) / "README.md").read_text()
    assert {"policy", "oracle"} <= {source for source, _ in read}
    assert all("[Accessibility tree]\n" in text for _, text in read)
    assert all("\npush-button " in text for source, text in read if source == "policy"), "a form has one"
    assert found["metrics"]["sft/loss"], "the last step of SFT says its loss"
    assert {one["name"] for one in found["evaluations"]} == {"sft", "after"}
    for one in found["evaluations"]:
        assert one["eyes"]["facts"]["precision"].startswith("bfloat16")
        assert all(gap["nats"] <= one["eyes"]["limit"] for gap in one["eyes"]["gaps"]), one["eyes"]
    assert model.num_parameters() == pytest.approx(134.5e6, rel=0.01)
