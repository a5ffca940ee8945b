"""Paired statistics against independent computations: enumeration, resampling, published values."""

import itertools
import random
from collections import Counter
from fractions import Fraction

import pytest

from training.statistics.paired_statistics import bootstrap_interval, paired_change, sign_test


def test_the_exact_test_has_published_values():
    # Agresti, Categorical Data Analysis (2013), 10.1.4: 86 against 150 changed their mind; p < 0.0001.
    assert sign_test(86, 150) == pytest.approx(3.8e-5, rel=0.05)
    assert sign_test(12, 3) == pytest.approx(0.0352, abs=1e-4)
    assert sign_test(0, 0) == 1
    assert sign_test(4, 4) == 1
    assert sign_test(0, 6) == 2 / 64


@pytest.mark.parametrize(("fixed", "regressed"), [(0, 3), (5, 1), (4, 6), (9, 2)])
def test_the_exact_test_counts_fair_coins_that_fall_as_unevenly(fixed: int, regressed: int):
    number = fixed + regressed
    falls = [sum(coins) for coins in itertools.product((0, 1), repeat=number)]
    uneven = abs(2 * fixed - number)
    as_uneven = sum(abs(2 * heads - number) >= uneven for heads in falls)
    assert sign_test(fixed, regressed) == pytest.approx(as_uneven / 2**number)


def test_the_interval_is_that_of_every_possible_resample():
    differences = [Fraction(one) for one in (1, 0, 0, -1, 1)]
    means = sorted(sum(drawn) / 5 for drawn in itertools.product(differences, repeat=5))
    total = len(means)
    expected = tuple(
        next(mean for place, mean in enumerate(means, 1) if place >= total * share)
        for share in (0.025, 0.975)
    )
    assert bootstrap_interval(Counter(differences)) == tuple(float(one) for one in expected)


@pytest.mark.parametrize("steps", [1, 3, 5])
def test_the_interval_is_that_of_many_random_resamples(steps: int):
    rng = random.Random(steps)
    differences = [Fraction(rng.randint(-steps, steps + 1), steps) for _ in range(120)]
    plain = [float(one) for one in differences]
    means = sorted(sum(rng.choices(plain, k=120)) / 120 for _ in range(8000))
    assert bootstrap_interval(Counter(differences)) == pytest.approx((means[200], means[7800]), abs=0.012)


def test_only_tasks_that_both_evaluations_have_are_compared():
    change = paired_change({"a": (0, 1), "b": (1, 1), "c": (1, 3)}, {"a": (1, 1), "c": (3, 3), "d": (0, 1)})
    assert change is not None
    assert (change.num_tasks, change.fixed, change.regressed) == (2, 2, 0)
    assert change.difference == pytest.approx((1 + 2 / 3) / 2)
    assert paired_change({"a": (1, 1)}, {"b": (1, 1)}) is None


def test_nothing_that_changed_is_no_evidence():
    change = paired_change({"a": (1, 1), "b": (0, 1)}, {"a": (1, 1), "b": (0, 1)})
    assert change is not None
    assert (change.low, change.high, change.p) == (0, 0, 1)
