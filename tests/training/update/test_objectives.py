"""The objectives as published: against TRL's code and against the formulas in fp64."""

from __future__ import annotations

from typing import Any

import pytest

from testing.training.objective_cases import BAR, GSPO, OBJECTIVES, ObjectiveCase, windowed_and_moved
from testing.training.objective_on_tensors import our_objective
from testing.training.trl_reference import trl_trainer


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return trl_trainer(tmp_path_factory.mktemp("trl"))


@pytest.mark.parametrize("case", OBJECTIVES, ids=lambda case: case.name)
def test_loss_and_gradient_are_the_published_ones(case: ObjectiveCase, trainer: Any) -> None:
    for what, _, loss, gradient in case.differences(trainer):
        assert max(loss, gradient) <= BAR, what


def test_gspo_by_token_is_gspo_in_windowed_trajectories_too() -> None:
    tensors = {
        name: value.double() if value.is_floating_point() else value
        for name, value in windowed_and_moved(5).items()
    }
    by_sequence, by_token = (
        our_objective(tensors, **GSPO | {"name": name}) for name in ("gspo", "gspo_token")
    )
    assert by_token[0] == pytest.approx(by_sequence[0], abs=BAR)
    assert float((by_token[1] - by_sequence[1]).abs().max()) <= BAR
    assert float(by_token[1].abs().max()) > 1e-3
