"""A group whose members were all rewarded alike: what the pages say of it depends on the algorithm."""

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from testing.factories import make_experiment, make_group, make_team, make_trajectory, make_user
from training.contracts.config import parse_config
from webapp.analysis.groups.equal_rewards import equal_rewards_of
from webapp.analysis.series.chart_panels import panels_of
from webapp.trajectories.models import Group

pytestmark = pytest.mark.django_db
IMITATION = {
    "name": "rejection_fine_tuning",
    "max_extra_groups": 0,
    "old_logprobs": "engine",
    "success_likelihood": 0,
    "turn_discount": 1,
}


def flat_group(algorithm: dict, score: float, **values: Any) -> Group:
    config = parse_config({"algorithm": algorithm, "replay": {"enabled": False}}).model_dump(mode="json")
    experiment = make_experiment(team=make_team(), config=config)
    group = make_group(
        experiment=experiment, size=2, num_scored=2, reward_mean=score, reward_std=0.0,
        finished_at=timezone.now(),
    )  # fmt: skip
    for member in range(2):
        make_trajectory(group=group, member=member, reward=score, **values)
    return group


@pytest.mark.parametrize(
    ("algorithm", "score", "words", "meaning", "is_learned"),
    [
        ({"name": "grpo"}, 1.0, "all 2 solved it", "learns nothing", False),
        ({"name": "grpo"}, 0.0, "none of 2 solved it", "learns nothing", False),
        (IMITATION, 1.0, "all 2 solved it", "imitates all of them", True),
        (IMITATION, 0.0, "none of 2 solved it", "imitates none", False),
        (IMITATION, 0.5, "all are rewarded alike", "imitates none", False),
    ],
)
def test_equal_rewards_mean_what_the_algorithm_makes_of_them(
    client: Client, algorithm: dict, score: float, words: str, meaning: str, is_learned: bool
) -> None:
    group = flat_group(algorithm, score)
    assert group.experiment
    found = equal_rewards_of(group, group.trajectories.all(), group.experiment.settings.algorithm)
    assert found
    assert (found.words, found.is_learned) == (words, is_learned)
    assert meaning in found.meaning
    client.force_login(make_user("viewer", team=group.team))
    for path in (f"/groups/{group.pk}/", f"/experiments/{group.experiment_id}/?tab=groups"):
        assert meaning in client.get(path).content.decode()


def test_what_a_limit_ended_is_not_imitated() -> None:
    group = flat_group(IMITATION, 1.0, status="truncated")
    assert group.experiment
    found = equal_rewards_of(group, group.trajectories.all(), group.experiment.settings.algorithm)
    assert found
    assert not found.is_learned
    assert "solved and ended none" in found.meaning
    assert found.words == "all 2 solved it, 2 of them at a limit"


def test_rewards_that_differ_need_no_words() -> None:
    group = make_group(size=2, num_scored=2, reward_std=0.5, finished_at=timezone.now())
    assert equal_rewards_of(group, group.trajectories.all(), None) is None


@pytest.mark.parametrize(("algorithm", "word"), [({"name": "grpo"}, "teaches"), (IMITATION, "imitated")])
def test_the_charts_help_follows_the_algorithm(algorithm: dict, word: str) -> None:
    panels = panels_of(flat_group(algorithm, 1.0).experiment)
    (panel,) = (one for one in panels if one["title"] == "Success by family")
    assert word in panel["help"]
    assert "help_of_imitation" not in panel
