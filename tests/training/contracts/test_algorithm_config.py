"""Combinations of the algorithm's knobs that would not do what they say are refused by their field."""

from __future__ import annotations

from typing import Any

import pytest

from training.contracts.config import ConfigError, parse_config

RECOMPUTED = {"old_logprobs": "recomputed"}


@pytest.mark.parametrize(
    ("sections", "field"),
    [
        ({"algorithm": {"correction": "truncate"}}, "algorithm.old_logprobs: a ratio against the engine"),
        ({"algorithm": {"updates_per_batch": 5}}, "algorithm.updates_per_batch: at most"),
        ({"algorithm": RECOMPUTED | {"max_staleness": 1}}, "algorithm.correction: with recomputed"),
        ({"algorithm": RECOMPUTED, "replay": {"enabled": True}}, "algorithm.correction: with recomputed"),
        ({"algorithm": {"name": "cispo"}}, "algorithm.dual_clip: cispo is defined with 0"),
        (
            {"algorithm": {"name": "rejection_fine_tuning", "reward_control": "random"}},
            "algorithm.reward_control: rejection_fine_tuning is defined with none",
        ),
        (
            {"algorithm": {"name": "rejection_fine_tuning"}, "replay": {"enabled": True}},
            "replay.enabled: rejection_fine_tuning imitates",
        ),
        ({"algorithm": {"clip_high": 2.0}}, "algorithm.dual_clip: must be above 1 + clip_high"),
    ],
)
def test_what_would_not_do_what_it_says_is_refused(sections: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError, match=field.replace("+", r"\+")):
        parse_config(sections)


@pytest.mark.parametrize(
    "sections",
    [
        {"algorithm": RECOMPUTED | {"name": "gspo", "updates_per_batch": 4}},
        {"algorithm": RECOMPUTED | {"correction": "mask", "max_staleness": 4}, "replay": {"enabled": True}},
        {"algorithm": {"max_staleness": 2, "updates_per_batch": 2}, "replay": {"enabled": True}},
        {"algorithm": {"name": "cispo", "dual_clip": 0}},
        {"algorithm": {"name": "rejection_fine_tuning"}},
    ],
)
def test_the_published_combinations_pass(sections: dict[str, Any]) -> None:
    assert parse_config(sections).algorithm.group_size == 8


@pytest.mark.parametrize("value", [None, "menu", 3, {}])
def test_what_should_be_a_list_is_told_how_lists_are_written(value):
    with pytest.raises(ConfigError) as refused:
        parse_config({"tasks": {"families": value}})
    assert refused.value.problems == {"tasks.families": "must be a list: [a, b], or [] for none"}


@pytest.mark.parametrize(
    ("sections", "meant"),
    [
        ({"optimizer": {"learning_rate": 1}}, "optimiser?"),
        ({"sft": {"enable": True}}, "sft.enabled?"),
        ({"desktops": {"qemu": {"memory": 1}}}, "desktops.qemu.memory_mb?"),
        ({"surprise": 1}, "check its spelling"),
        ({"algorithm": None}, "must be a section: settings by their names"),
    ],
)
def test_a_refusal_says_what_may_be_meant(sections: dict[str, Any], meant: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_config(sections)
    (problem,) = refused.value.problems.values()
    assert problem.endswith(meant)
