"""Paired statistics against enumeration, published values and a normal distribution."""

import itertools
import random
from collections import Counter
from fractions import Fraction

import pytest

from training.statistics import paired_statistics
from training.statistics.paired_statistics import paired_change, randomisation_test


def compared(fixed: int, regressed: int, same: int = 0) -> tuple[float, float, float]:
    """Of tasks with one sample each."""
    return randomisation_test(+Counter({Fraction(1): fixed, Fraction(-1): regressed, Fraction(0): same}))


def p_by_enumeration(differences: list[Fraction], mean: Fraction) -> float:
    """Of all ways to flip what is left of each difference."""
    left = [one - mean for one in differences]
    sums = [sum(flipped) for flipped in itertools.product(*((one, -one) for one in left))]
    tails = (sum(one <= sum(left) for one in sums), sum(one >= sum(left) for one in sums))
    return min(1.0, 2 * min(tails) / len(sums))


def test_the_exact_test_has_published_values():
    # Agresti, Categorical Data Analysis (2013), 10.1.4: 86 against 150 changed their mind; p < 0.0001.
    assert compared(86, 150)[2] == pytest.approx(3.8e-5, rel=0.05)
    assert compared(12, 3)[2] == pytest.approx(0.0352, abs=1e-4)
    assert compared(4, 4)[2] == 1
    assert compared(0, 6, same=66)[2] == pytest.approx(2 / 64)


@pytest.mark.parametrize(("fixed", "regressed"), [(0, 3), (5, 1), (4, 6), (9, 2)])
def test_with_one_sample_per_task_it_counts_fair_coins(fixed: int, regressed: int):
    number = fixed + regressed
    falls = [sum(coins) for coins in itertools.product((0, 1), repeat=number)]
    uneven = abs(2 * fixed - number)
    as_uneven = sum(abs(2 * heads - number) >= uneven for heads in falls)
    assert compared(fixed, regressed, same=20)[2] == pytest.approx(as_uneven / 2**number)


@pytest.mark.parametrize("seed", range(3))
def test_the_interval_holds_the_means_that_the_test_does_not_refuse(seed: int):
    rng = random.Random(seed)
    differences = [Fraction(rng.randint(-2, 3), 3) for _ in range(7)]
    low, high, p = randomisation_test(Counter(differences))
    assert p == pytest.approx(p_by_enumeration(differences, Fraction(0)))
    for mean in (Fraction(place, 45) for place in range(-45, 46)):
        is_inside = low - 1e-9 <= mean <= high + 1e-9
        assert (p_by_enumeration(differences, mean) >= 0.05) == is_inside, float(mean)


@pytest.mark.parametrize("most_cells", [paired_statistics.MAX_CELLS, 0])
def test_p_is_below_5_percent_exactly_where_the_interval_excludes_0(
    most_cells: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(paired_statistics, "MAX_CELLS", most_cells)
    rng, found = random.Random(7), Counter[bool]()
    for _ in range(400):
        steps, lean = rng.choice((1, 2, 3, 4)), rng.choice((-1, 0, 1))
        own = [Fraction(rng.randint(-steps, steps + lean), steps + 1) for _ in range(rng.randint(8, 60))]
        low, high, p = randomisation_test(Counter(own))
        assert (p < 0.05) == (low > 0 or high < 0), (low, high, p)
        found[p < 0.05] += 1
    assert min(found.values()) > 50


def test_an_interval_that_touches_0_stands_beside_no_small_p():
    """The bootstrap's was +1 to +17 points beside a p of 0.07."""
    low, high, p = compared(7, 1, same=64)
    assert (low, round(p, 3)) == (0, 0.070)
    assert high == pytest.approx(0.16, abs=0.005)


@pytest.mark.parametrize("samples", [(8, 8), (8, 7), (64, 64), (1009, 1013)])
def test_the_interval_holds_the_difference_however_many_samples(samples: tuple[int, int]):
    before, after = samples
    change = paired_change({"a": (2, before), "b": (2, before)}, {"a": (3, after), "b": (3, after)})
    assert change is not None
    assert (change.low, change.high) == (-1, 1)
    number = range(50)
    change = paired_change({str(n): (2, before) for n in number}, {str(n): (3, after) for n in number})
    assert change is not None
    assert (change.low, change.high) == pytest.approx((change.difference, change.difference), abs=1e-3)


def test_many_tasks_are_compared_by_a_normal_distribution(monkeypatch: pytest.MonkeyPatch):
    exact = compared(120, 90, same=400)
    monkeypatch.setattr(paired_statistics, "MAX_CELLS", 0)
    assert compared(120, 90, same=400) == pytest.approx(exact, abs=0.01)


def test_only_tasks_that_both_evaluations_have_are_compared():
    change = paired_change({"a": (0, 1), "b": (1, 1), "c": (1, 3)}, {"a": (1, 1), "c": (3, 3), "d": (0, 1)})
    assert change is not None
    assert (change.num_tasks, change.fixed, change.regressed) == (2, 2, 0)
    assert change.difference == pytest.approx((1 + 2 / 3) / 2)
    assert (change.low, change.high) == (-1, 1), "two tasks show nothing"
    assert paired_change({"a": (1, 1)}, {"b": (1, 1)}) is None


def test_nothing_that_changed_is_no_evidence():
    tasks = {str(number): (number % 2, 1) for number in range(6)}
    change = paired_change(tasks, tasks)
    assert change is not None
    assert (change.low, change.high, change.p) == (0, 0, 1)
    assert (change.fixed, change.regressed) == (0, 0)
