"""Intervals and p values against simulation: how often the truth is inside, how often chance is a finding."""

import random

import numpy as np
import pytest

from training.statistics.agreement import rank_correlation
from training.statistics.chance import welch_test
from training.statistics.share_interval import wilson_interval
from training.statistics.student_t import mean_interval, t_975, t_p

TIMES = 3000
"""The standard error of a coverage of 95 % is 0.4 points."""


@pytest.mark.parametrize("number", [2, 3, 5, 11, 40])
def test_the_interval_of_a_mean_covers_it_95_times_in_100(number: int) -> None:
    dice = random.Random(number)
    inside = 0
    for _ in range(TIMES):
        low, high = mean_interval([dice.gauss(0.3, 2.0) for _ in range(number)])
        inside += low <= 0.3 <= high
    assert inside / TIMES == pytest.approx(0.95, abs=0.016)


@pytest.mark.parametrize(("before", "after"), [(5, 5), (4, 12), (30, 8)])
def test_welchs_interval_covers_the_difference_as_often_as_its_p_leaves_chance_alone(
    before: int, after: int
) -> None:
    dice = random.Random(before)
    inside = 0
    for _ in range(TIMES):
        test = welch_test(
            [dice.gauss(1.0, 1.0) for _ in range(before)], [dice.gauss(1.0, 1.7) for _ in range(after)]
        )
        assert test is not None
        is_inside = test.low <= 0 <= test.high
        assert is_inside == (test.p >= 0.05)
        inside += is_inside
    assert inside / TIMES == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize(("share", "number"), [(0.5, 20), (0.1, 50), (0.9, 216)])
def test_the_interval_of_a_share_covers_it_about_95_times_in_100(share: float, number: int) -> None:
    """Wilson's is not exact: it lies around 0.95 (Brown, Cai and DasGupta 2001)."""
    dice = random.Random(number)
    inside = 0
    for _ in range(TIMES):
        low, high = wilson_interval(sum(dice.random() < share for _ in range(number)), number)
        inside += low <= share <= high
    assert 0.92 <= inside / TIMES <= 0.985


@pytest.mark.parametrize("degrees", [1, 2, 2.5, 9, 19, 20, 57.3, 5000])
def test_an_interval_ends_where_its_p_is_5_percent(degrees: float) -> None:
    assert t_p(t_975(degrees), degrees) == pytest.approx(0.05, rel=1e-9)


def test_a_rank_correlation_is_that_of_a_simulated_population() -> None:
    dice = np.random.default_rng(3)
    left = dice.normal(size=4000)
    assert abs(rank_correlation(left, dice.normal(size=4000)) or 0.0) < 0.06
    # of two normals with correlation r, Spearman's is 6 / pi * asin(r / 2)
    related = 0.6 * left + 0.8 * dice.normal(size=4000)
    assert rank_correlation(left, related) == pytest.approx(6 / np.pi * np.arcsin(0.3), abs=0.03)
