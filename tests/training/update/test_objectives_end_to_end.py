"""Whole steps of the trainer against transformers and the formulas alone, on one and two processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from testing.training.parallel_probe import launch
from testing.training.update_probe import (
    PATHS,
    by_formula,
    by_trainer,
    differences,
    write_probe,
)
from training.distributed.world import World, start_world, stop_world

BAR = 1e-6


@pytest.fixture(scope="module")
def folder(toy_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("updates")
    write_probe(folder, toy_model)
    return folder


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    yield start_world()
    stop_world()


@pytest.fixture(scope="module")
def expected(folder: Path) -> dict[str, dict]:
    return {name: by_formula(folder, name) for name in PATHS}


@pytest.mark.parametrize("name", PATHS)
def test_one_process_walks_as_the_formula_says(
    name: str, folder: Path, world: World, expected: dict[str, dict]
) -> None:
    found = by_trainer(folder, name, world)
    assert max(differences(found, expected[name])) <= BAR
    assert found["metrics"]["policy/clip_fraction"] > 0.05, "the bounds are at work"


@pytest.mark.slow
def test_two_processes_walk_as_the_formula_says(folder: Path, expected: dict[str, dict]) -> None:
    found = launch(folder, 2, list(PATHS), probe="update_probe")
    for name in PATHS:
        assert max(differences(found[name], expected[name])) <= BAR, name
