"""A long benchmark keeps each run that finished, and measures no such run twice."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.finished_runs import FinishedRuns
from benchmarks.training.learning_curves_picture import over_seeds, smooth

KEY = {"arm": "grpo", "seed": 0}


def runs_in(folder: Path, *, steps: int = 60, anew: bool = False) -> FinishedRuns:
    return FinishedRuns(name="toy", budget={"steps": steps}, anew=anew, results=folder, loop_turns=1000)


def test_an_interrupted_benchmark_goes_on_where_it_was(tmp_path: Path) -> None:
    runs_in(tmp_path).once(KEY, lambda: {"status": "finished", "share": 0.5})
    record = json.loads((tmp_path / "toy.json").read_text())
    assert record["passed"] is False, "not before the whole benchmark is"
    (stored,) = record["figures"]["runs"]
    assert stored["conditions"]["before"]["loop_s"] > 0
    assert stored["conditions"]["after"]["load"] >= 0

    def again() -> dict[str, object]:
        raise AssertionError("measured twice")

    later = runs_in(tmp_path)
    assert later.once(KEY, again)["share"] == 0.5
    later.once(KEY | {"seed": 1}, lambda: {"status": "finished", "share": 0.6})
    assert later.finish(passed=True) == 0
    assert [run["share"] for run in runs_in(tmp_path).runs] == [0.5, 0.6]


def test_a_run_of_another_budget_or_without_an_end_is_measured_again(tmp_path: Path) -> None:
    runs_in(tmp_path).once(KEY, lambda: {"status": "ran out of time"})
    assert runs_in(tmp_path).find(KEY) is None
    runs_in(tmp_path).once(KEY, lambda: {"status": "finished"})
    assert runs_in(tmp_path).find(KEY) is not None
    assert runs_in(tmp_path, steps=30).find(KEY) is None
    assert runs_in(tmp_path, anew=True).find(KEY) is None
    assert len(runs_in(tmp_path).runs) == 1


def test_curves_of_seeds_become_a_mean_and_its_range() -> None:
    assert smooth([(1, 0.0), (2, 1.0), (3, 1.0)], width=2) == [(1, 0.0), (2, 0.5), (3, 1.0)]
    assert over_seeds([[(0, 0.2), (20, 0.5)], [(0, 0.4)]]) == [
        (0, (0.2 + 0.4) / 2, 0.2, 0.4),
        (20, 0.5, 0.5, 0.5),
    ]
