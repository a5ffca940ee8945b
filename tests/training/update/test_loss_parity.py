"""Our losses against TRL's own code on the same tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from testing.training.trl_reference import (
    CASES,
    LOSS_BAR,
    Case,
    make_tensors,
    our_loss,
    trl_loss,
    trl_trainer,
)


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    return trl_trainer(tmp_path_factory.mktemp("trl"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_loss_and_gradient_equal_trl(case: Case, trainer: Any) -> None:
    tensors = make_tensors(seed=CASES.index(case))
    ours, our_gradient = our_loss(case, tensors)
    theirs, their_gradient = trl_loss(case, tensors, trainer)
    assert abs(ours - theirs) <= LOSS_BAR
    assert float((our_gradient - their_gradient).abs().max()) <= LOSS_BAR
    assert float(our_gradient.abs().max()) > 1e-3, "the case has a gradient to compare"
