"""A long benchmark measures; only one that was cut off goes on, by --resume, on the same tree and machine."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks import finished_runs, report
from benchmarks.finished_runs import FinishedRuns
from benchmarks.training.learning_curves_picture import over_seeds, smooth

KEY = {"arm": "grpo", "seed": 0}


@pytest.fixture(autouse=True)
def tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(report.COMMIT_VARIABLE, "ff9b6015")


def runs_in(folder: Path, *, steps: int = 60, resume: bool = False) -> FinishedRuns:
    return FinishedRuns(name="toy", budget={"steps": steps}, resume=resume, results=folder, loop_turns=1000)


def finished(share: float = 0.5) -> dict[str, Any]:
    return {"status": "finished", "share": share}


def again() -> dict[str, object]:
    raise AssertionError("measured twice")


def test_a_benchmark_that_ended_is_measured_anew(tmp_path: Path) -> None:
    first = runs_in(tmp_path)
    first.once(KEY, finished)
    assert first.finish(passed=True) == 0
    later = runs_in(tmp_path)
    assert later.runs == []
    assert later.once(KEY, lambda: finished(0.25))["share"] == 0.25
    later.finish(passed=True)
    with pytest.raises(SystemExit, match="no run was cut off"):
        runs_in(tmp_path, resume=True)


def test_one_that_was_cut_off_goes_on_where_it_was(tmp_path: Path) -> None:
    runs_in(tmp_path).once(KEY, finished)
    assert not (tmp_path / "toy.json").exists(), "no verdict before the whole benchmark is measured"
    later = runs_in(tmp_path, resume=True)
    assert later.once(KEY, again)["share"] == 0.5
    later.once(KEY | {"seed": 1}, lambda: finished(0.6))
    assert later.finish(passed=True) == 0
    record = json.loads((tmp_path / "toy.json").read_text())
    assert [run["share"] for run in record["figures"]["runs"]] == [0.5, 0.6]
    assert record["figures"]["runs"][0]["conditions"]["before"]["loop_s"] > 0
    assert [path.name for path in tmp_path.iterdir()] == ["toy.json"], "it ended: nothing to go on with"


def test_without_resume_what_was_cut_off_is_measured_too(tmp_path: Path) -> None:
    runs_in(tmp_path).once(KEY, finished)
    assert runs_in(tmp_path).once(KEY, lambda: finished(0.1))["share"] == 0.1


@pytest.mark.parametrize("what", ["commit", "machine", "budget", "host"])
def test_another_tree_machine_or_budget_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    runs_in(tmp_path).once(KEY, finished)
    if what == "commit":
        monkeypatch.setenv(report.COMMIT_VARIABLE, "ff9b6015-dirty-12345678")
    if what == "machine":
        known = report.machine()
        monkeypatch.setattr(finished_runs, "machine", lambda: known | {"machine": "another, 64 cores"})
    if what == "host":
        monkeypatch.setattr(finished_runs.platform, "node", lambda: "another")
    with pytest.raises(SystemExit, match=f"has {what} .*, now it is"):
        runs_in(tmp_path, resume=True, steps=30 if what == "budget" else 60)


def test_a_run_that_failed_is_measured_again_and_keeps_that(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs_in(tmp_path).once(KEY, lambda: {"status": "ran out of time"})
    later = runs_in(tmp_path, resume=True)
    assert later.once(KEY, finished)["earlier"] == ["ran out of time"]
    later.finish(passed=True)
    assert "ran out of time then finished" in capsys.readouterr().out


def test_a_verdict_names_commit_and_date_of_every_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = runs_in(tmp_path)
    runs.once(KEY, finished)
    monkeypatch.setenv(report.COMMIT_VARIABLE, "0abc0abc")
    second = runs.once(KEY | {"seed": 1}, finished)
    assert runs.finish(passed=True) == 1, "rows of two trees are no verdict"
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("arm grpo, seed 0") and "ff9b6015" in line for line in lines)
    (row,) = [line for line in lines if line.startswith("arm grpo, seed 1")]
    assert "0abc0abc" in row
    assert second["conditions"]["date"] in row


def test_rows_of_another_tree_or_machine_are_a_record_and_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    here = report.stamp()
    rows = {
        "now": here,
        "another tree": here | {"commit": "0abc0abc"},
        "another machine": here | {"machine": "another, 64 cores"},
        "of before rows named a tree": {"tokens_per_s": 1.0},
    }
    assert list(report.of_this_tree(rows)) == ["now"]
    monkeypatch.setattr(report, "commit", lambda: "")
    assert report.of_this_tree({"no checkout": report.stamp()}) == {}


def test_the_tree_is_its_commit_and_what_was_changed_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(report.COMMIT_VARIABLE)
    assert report.commit(tmp_path) == "", "no checkout"

    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    (tmp_path / "code.py").write_text("1\n")
    git("add", ".")
    git("commit", "-m", "begin")
    clean = report.commit(tmp_path)
    (tmp_path / "code.py").write_text("2\n")
    second = report.commit(tmp_path)
    (tmp_path / "code.py").write_text("3\n")
    third = report.commit(tmp_path)
    (tmp_path / "new.py").write_text("4\n")
    assert len({clean, second, third, report.commit(tmp_path)}) == 4
    assert second.startswith(f"{clean}-dirty-")
    (tmp_path / "new.py").unlink()
    (tmp_path / "code.py").write_text("1\n")
    (tmp_path / "benchmarks" / "results").mkdir(parents=True)
    (tmp_path / "benchmarks" / "results" / "toy.json").write_text("{}")
    assert report.commit(tmp_path) == clean, "a result is no change of what is measured"


def test_curves_of_seeds_become_a_mean_and_its_range() -> None:
    assert smooth([(1, 0.0), (2, 1.0), (3, 1.0)], width=2) == [(1, 0.0), (2, 0.5), (3, 1.0)]
    assert over_seeds([[(0, 0.2), (20, 0.5)], [(0, 0.4)]]) == [
        (0, (0.2 + 0.4) / 2, 0.2, 0.4),
        (20, 0.5, 0.5, 0.5),
    ]
