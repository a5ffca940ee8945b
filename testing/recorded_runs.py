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
