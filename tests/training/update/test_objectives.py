"""The objectives as published: against TRL's code and against the formulas in fp64."""

from __future__ import annotations

from typing import Any

import pytest

from testing.training.objective_cases import BAR, OBJECTIVES, ObjectiveCase
from testing.training.trl_reference import trl_trainer


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return trl_trainer(tmp_path_factory.mktemp("trl"))


@pytest.mark.parametrize("case", OBJECTIVES, ids=lambda case: case.name)
def test_loss_and_gradient_are_the_published_ones(case: ObjectiveCase, trainer: Any) -> None:
    for what, _, loss, gradient in case.differences(trainer):
        assert max(loss, gradient) <= BAR, what
