"""The charts: every metric that the trainer reports is on one of them, in groups that stay together."""

import re
from itertools import groupby
from pathlib import Path

from webapp.experiments.page.chart_panels import PANELS

TRAINING = Path(__file__).resolve().parents[4] / "training"
REPORTED = re.compile(
    r'"((?:rollout|reward|success|loss|policy|optimiser|async|staleness|sync|replay|time|sft)/[a-z_0-9]*)"'
)
NOT_DRAWN = {
    "optimiser/learning_rate",
    "optimiser/skipped_steps",
    "policy/version",
    "rollout/dropped_groups",
    "rollout/num_trajectories",
    "rollout/reward_std_in_group",
    "rollout/unrecorded",
    "sft/learning_rate",
    "sft/step",
    "sync/fell_back",
}
"""Told in the log, by an alarm or in words; the API has them all."""


def is_drawn(name: str) -> bool:
    return any(
        name.startswith(wanted) if wanted.endswith("/") else name == wanted
        for panel in PANELS
        for wanted in panel.names
    )


def test_every_metric_of_the_trainer_is_drawn_or_left_out_on_purpose() -> None:
    text = "\n".join(path.read_text() for path in TRAINING.rglob("*.py"))
    missing = {name for name in REPORTED.findall(text) if not is_drawn(name)} - NOT_DRAWN
    assert missing == set()


def test_panels_of_a_group_follow_each_other_and_explain_themselves() -> None:
    groups = [group for group, _ in groupby(panel.group for panel in PANELS)]
    assert len(groups) == len(set(groups))
    assert [panel.title for panel in PANELS if not panel.help.endswith(".")] == []
