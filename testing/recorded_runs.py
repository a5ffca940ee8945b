"""Runs as they were recorded on GPU hosts, for what is tested against what happened."""

import json
from functools import cache
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent.parent / "benchmarks" / "results"


@cache
def smoldesk_runs() -> dict[str, Any]:
    """SmolLM2 on smoldesk, by start, arm and seed: curves, and every evaluation with its outcomes by task."""
    runs: dict[str, Any] = json.loads((RESULTS / "gpu" / "smoldesk.json").read_text())["figures"]["runs"]
    return runs


@cache
def replay_runs() -> dict[str, Any]:
    """SmolLM2 where whole groups fail, by arm: curves and evaluations. Rewards are 1 for what was solved."""
    found = json.loads((RESULTS / "gpu" / "replay_matters.json").read_text())
    return {run["arm"]: run for run in found["figures"]["runs"]}
