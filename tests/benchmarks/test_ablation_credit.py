"""The study of credit compares arms by what their desktops spent, continuations included."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.training import ablation_credit


def run(arm: str, seed: int, successes: list[float], *, branch_s: float = 0.0) -> dict[str, Any]:
    """Evaluated at every second step; a step takes 10 desktop-seconds and 5 turns, its branches more."""
    steps = range(1, 2 * len(successes) - 1)
    rows = [
        {"step": step, "purpose": "train", "trajectories": 4, "turns": 5, "seconds": 10.0} for step in steps
    ]
    if branch_s:
        rows += [
            {"step": step, "purpose": "branch", "trajectories": 2, "turns": 5, "seconds": branch_s}
            for step in steps
        ]
    return {
        "arm": arm,
        "seed": seed,
        "step": len(steps),
        "desktops": rows,
        "sampled_curve": [(2 * place, success) for place, success in enumerate(successes)],
        "rollout_curve": [(step, 0.5) for step in steps],
        "after": {"num_success": round(48 * successes[-1]), "num_samples": 48},
        "after_greedy": {"num_success": round(24 * successes[-1]), "num_samples": 24},
    }


def test_continuations_are_spent_too() -> None:
    found = run("branches", 0, [0.4, 0.6, 0.9], branch_s=10.0)
    assert ablation_credit.curve(found, "steps") == [(0, 0.4), (2, 0.6), (4, 0.9)]
    assert ablation_credit.curve(found, "seconds") == [(0, 0.4), (40, 0.6), (80, 0.9)]
    assert ablation_credit.curve(found, "turns") == [(0, 0.4), (20, 0.6), (40, 0.9)]


def test_the_bar_is_reached_on_the_line_between_two_evaluations_or_never() -> None:
    assert ablation_credit.reached([(0, 0.4), (10, 0.6), (20, 1.0)]) == pytest.approx(15)
    assert ablation_credit.reached([(0, 0.9), (10, 0.6)]) == 0
    assert ablation_credit.reached([(0, 0.4), (10, 0.79)]) is None


def test_success_is_averaged_until_the_same_was_spent() -> None:
    assert ablation_credit.mean_until([(0, 0.0), (10, 1.0), (20, 1.0)], 20) == pytest.approx(0.75)
    assert ablation_credit.mean_until([(0, 0.0), (10, 1.0), (20, 1.0)], 5) == pytest.approx(0.25)


@pytest.mark.parametrize(("branch_s", "quicker"), [(1.0, True), (30.0, False)])
def test_fewer_steps_alone_are_not_quicker(branch_s: float, quicker: bool) -> None:
    runs = [run("grpo", seed, [0.4, 0.6, 0.8]) for seed in (0, 1, 2)]
    runs += [run("branches", seed, [0.4, 0.8, 0.9], branch_s=branch_s) for seed in (0, 1, 2)]
    plain, branches = (ablation_credit.arm_of(name, runs) for name in ("grpo", "branches"))
    assert branches["reached"]["steps"] == dict.fromkeys((0, 1, 2), 2.0)
    assert ablation_credit.is_quicker(branches, plain) is quicker
    assert branches["continuations"] == 3 * 4 * 2
    assert plain["against"]["seconds"] is None
    assert len(ablation_credit.row_of(branches)) == len(ablation_credit.HEADER)


def test_a_difference_of_three_seeds_has_students_interval() -> None:
    found = ablation_credit.paired({0: 0.1, 1: 0.2, 2: 0.3})
    assert found["mean"] == pytest.approx(0.2)
    assert found["high"] - found["mean"] == pytest.approx(4.302652729911275 * 0.1 / 3**0.5)
    assert ablation_credit.paired({0: 0.1})["low"] is None
