"""`benchmarks.many_hosts`: the bar is on the mean of the pairs' ratios, and on every run being whole."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.many_hosts_pairs import JOINED, ONE, judge


def pair(ratio: float, **of_joined: Any) -> dict[str, Any]:
    return {"ratio": ratio, ONE: {"passed": True}, JOINED: {"passed": True} | of_joined}


@pytest.mark.parametrize(
    ("ratios", "mean", "error", "passed"),
    [
        ((0.80, 0.85, 0.90), 0.85, 0.029, True),  # one pair below the bar decides nothing
        ((0.80, 0.84, 0.90), 0.847, 0.029, False),
        ((0.9,), 0.9, None, True),
    ],
)
def test_the_mean_of_the_ratios_is_judged(
    ratios: tuple[float, ...], mean: float, error: float | None, passed: bool
) -> None:
    found = judge([pair(ratio) for ratio in ratios])
    assert (found["mean_ratio"], found["standard_error"], found["passed"]) == (mean, error, passed)


def test_a_run_that_lost_something_fails_whatever_its_rate() -> None:
    assert not judge([pair(1.0), pair(1.0, passed=False)])["passed"]
