"""First desk's bar looks at how trajectories ended, and both ablations' arms are configs that can run."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.training import first_desk
from benchmarks.training.ablation_arms import STUDIES
from benchmarks.training.ablation_runs import UPDATES
from training.contracts.config import parse_config
from training.planning.presets import load_preset


def evaluated(solved: float, *, at_limit: float = 0.0, **shares: float) -> dict[str, Any]:
    """Of 72 tasks in three families; `solved` is ended by the agent."""
    family = (round(24 * (solved + at_limit)), 24, round(24 * at_limit))
    return {
        "success": solved + at_limit,
        "solved": solved,
        "num_tasks": 72,
        "num_samples": 72,
        "truncated_share": shares.get("truncated", at_limit),
        "unparsable_share": shares.get("unparsable", 0.0),
        "per_family": dict.fromkeys(("colour", "menu", "note"), family),
    }


def missed(greedy: dict[str, Any], sampled: dict[str, Any], *, entropy: float = 0.05) -> list[str]:
    row = {
        "before": evaluated(0.375),
        "greedy_before": evaluated(1 / 6),
        "after": sampled,
        "greedy_after": greedy,
        "curves": {"loss/entropy": [(step, entropy) for step in range(1, 61)]},
        "step": 60,
        "num_cores": 2,
        "to_end_of_grpo_s": 590.0,
    }
    return first_desk.missed(row | first_desk.at_the_end(row))


def test_a_run_that_ends_what_it_solves_meets_the_bar() -> None:
    assert missed(evaluated(11 / 12), evaluated(5 / 6)) == []


def test_a_run_that_solves_and_babbles_misses_it() -> None:
    """The seed that was reported: 89 % greedily, most of it at the limit."""
    words = missed(
        evaluated(1 / 2, at_limit=3 / 8, unparsable=0.4), evaluated(1 / 3, at_limit=0.5, unparsable=0.4)
    )
    assert words == [
        "solved 50% greedily", "greedy +33%", "sampled -4%", "43.8% truncated", "40.0% unparsable"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "entropy", "word"),
    [
        ({"truncated": 0.11}, 0.05, "truncated"),
        ({"unparsable": 0.021}, 0.05, "unparsable"),
        ({}, 0.11, "entropy"),
    ],
)
def test_each_figure_of_the_end_is_judged(changes: dict[str, float], entropy: float, word: str) -> None:
    (words,) = missed(evaluated(11 / 12, **changes), evaluated(5 / 6, **changes), entropy=entropy)
    assert word in words


@pytest.mark.parametrize(("study", "arm"), [(study, arm) for study, arms in STUDIES.items() for arm in arms])
def test_every_arm_is_a_config(study: str, arm: str) -> None:
    preset = load_preset("first-desk")
    assert preset is not None
    values = preset.config.model_dump(mode="json")
    for name, value in STUDIES[study][arm].items():
        section, _, field = name.partition(".")
        values[section][field] = value
    config = parse_config(values)
    assert config.algorithm.updates_per_batch == STUDIES[study][arm].get(UPDATES, 1)
