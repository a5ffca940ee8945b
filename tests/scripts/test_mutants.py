"""The list of planted mistakes fits the tree, and the tool tells which of them tests notice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.mutants.__main__ import MIN_PLANTS
from scripts.mutants.planted import BadList, Plant, planted
from scripts.mutants.tree_copy import TreeCopy
from testing.paths import REPOSITORY

AREAS = {
    "objective", "losses", "step", "batch", "rewards", "statistics", "replay", "people", "hosts", "placement",
    "evaluators",
}  # fmt: skip
PLANTS = planted()


def test_every_area_has_its_mistakes() -> None:
    assert {plant.area for plant in PLANTS} == AREAS
    assert len(PLANTS) >= MIN_PLANTS
    assert len({(plant.path, plant.old, plant.new) for plant in PLANTS}) == len(PLANTS)
    assert any(plant.on_postgres for plant in PLANTS)


@pytest.mark.parametrize("area", sorted(AREAS))
def test_what_is_replaced_stands_in_the_tree(area: str) -> None:
    """Whoever changes such a line writes its mistake anew in scripts/mutants/changes."""
    plants = [plant for plant in PLANTS if plant.area == area]
    problems = []
    for plant in plants:
        try:
            plant.mutated(REPOSITORY)
        except BadList as problem:
            problems.append(str(problem))
    assert problems == []
    tests = {test for plant in plants for test in (*plant.tests, *plant.room)}
    assert [test for test in sorted(tests) if not (REPOSITORY / test).exists()] == []


def made(tree: Path, old: str, new: str) -> Plant:
    return Plant(area="toy", path="toy.py", old=old, new=new, tests=(), room=(), on_postgres=False, reason="")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("x * 2", "x", "stands 0 times"),
        ("x", "y", "stands 3 times"),
        ("x + 1", "x + (", "was never closed"),
        ("x + 1", "x  +  1", "changes no code"),
    ],
)
def test_a_change_that_is_none_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    (tmp_path / "toy.py").write_text("def one(x):\n    return x + 1  # x\n")
    with pytest.raises(BadList, match=f"toy.toml, toy.py, .*{message}"):
        made(tmp_path, old, new).mutated(tmp_path)


def test_a_copy_has_the_change_only_meanwhile_and_the_checkout_never(tmp_path: Path) -> None:
    copy, plant = TreeCopy(tmp_path), PLANTS[0]
    before = (REPOSITORY / plant.path).read_text()
    with copy.with_change(plant):
        changed = (tmp_path / plant.path).stat().st_mtime
        assert (tmp_path / plant.path).read_text() == plant.mutated(REPOSITORY) != before
        assert (REPOSITORY / plant.path).read_text() == before
    assert (tmp_path / plant.path).read_text() == before
    assert (tmp_path / plant.path).stat().st_mtime != changed, "or its compiled form would stay"


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_sample_of_the_mistakes_is_noticed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "scripts.mutants", "--sample", "6", "--databases", "sqlite"]
    done = subprocess.run(
        [*command, "--jobs", "2", "--results", str(tmp_path)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    record = json.loads((tmp_path / "mutants.json").read_text())
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    outcomes = [run["outcome"] for run in record["figures"]["runs"]]
    assert outcomes == ["killed"] * 6
    assert all(run["by"].startswith("tests/") for run in record["figures"]["runs"])
    assert record["commit"]
