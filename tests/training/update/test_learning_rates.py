"""How the learning rate changes over the steps of a stage."""

from __future__ import annotations

import pytest

from training.update.learning_rates import sft_rate_scale


@pytest.mark.parametrize(("step", "scale"), [(0, 1 / 30), (29, 1.0), (50, 1.0), (90, 0.5), (100, 0.0)])
def test_the_sft_rate_warms_up_stays_and_decays(step, scale):
    assert sft_rate_scale(step, 100) == pytest.approx(scale)
