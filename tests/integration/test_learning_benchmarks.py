"""The learning benchmarks run from end to end in their smallest form, on real desktops and a real Redis."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from testing.private_installation import INHERITED_SETTINGS, REPOSITORY

pytestmark = [pytest.mark.slow, pytest.mark.desktop, pytest.mark.timeout(2400)]
LIMIT_S = 2300


def run(module: str, *arguments: str) -> str:
    environment = {name: text for name, text in os.environ.items() if name not in INHERITED_SETTINGS}
    environment.pop("DJANGO_SETTINGS_MODULE", None)  # the tests' own
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_the_ablation_trains_every_arm_and_records_it(tmp_path: Path):
    arms = ("gspo", "grpo, replay", "decoupled, staleness 2")
    tiny = ("benchmarks.training.ablation", "--tiny", "--seeds", "0", "--results", str(tmp_path), "--arms")
    assert "tiny: every run finished" in run(*tiny, *arms)
    recorded = json.loads((tmp_path / "ablation.json").read_text())["figures"]["runs"]
    runs = {found["arm"]: found for found in recorded}
    assert set(runs) == set(arms)
    assert all(found["step"] == 2 and found["after"]["num_tasks"] == 3 for found in runs.values())
    assert runs["grpo, replay"]["accepted"] > 0
    assert runs["gspo"]["accepted"] == 0
    assert [row["step"] for row in runs["gspo"]["desktops"] if row["seconds"] > 0] == [1, 2]


def test_the_learning_run_trains_both_arms_from_the_shipped_start(tmp_path: Path):
    record = tmp_path / "figures.json"
    sizes = ("--desktops", "4", "--env-workers", "2", "--budget-s", "1800")
    run("benchmarks.gpu.learning", "--tiny", "--engine", "transformers", *sizes, "--record", str(record))
    figures = json.loads(record.read_text())
    assert [arm["staleness"] for arm in figures["arms"]] == [0, 2]
    for arm in figures["arms"]:
        assert arm["engine"] == "transformers"
        assert len(arm["curve"]["rollout/success"]) == 2
        assert [arm[f"greedy_{when}"]["num_samples"] for when in ("before", "after")] == [3, 3]
        assert arm["after"]["num_samples"] == 9
