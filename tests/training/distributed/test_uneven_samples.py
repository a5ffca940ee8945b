"""Ranks without pictures, and one long sequence among short ones: the step ends and finds the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from testing.training.parallel_probe import launch
from testing.training.uneven_probe import CASES, LAYOUTS, find, read_case, write_cases
from training.distributed.world import World, start_world, stop_world


@pytest.fixture(scope="module")
def folder(toy_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("uneven")
    write_cases(folder, toy_model)
    return folder


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    yield start_world()
    stop_world()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_loss_and_gradient_are_those_of_one_rank_padded(folder: Path, world: World) -> None:
    """Also of the pass that scores before the first of two updates, and of SFT; on two ranks none waits."""
    two = launch(folder, 2, list(CASES), probe="uneven_probe", limit_s=240)
    for name in CASES:
        samples = read_case(folder, name)
        expected = find(folder, "padded", samples, world)
        assert expected["updates"] == 2
        assert expected["norm"] > 1e-3
        found = {"1 rank, packed": find(folder, "packed", samples, world)}
        found |= {f"2 ranks, {layout}": two[f"{name}, {layout}"] for layout in LAYOUTS}
        for where, values in found.items():
            assert values == pytest.approx(expected, rel=1e-3, abs=1e-5), f"{name}, {where}"
