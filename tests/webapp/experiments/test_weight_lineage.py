"""How many policy versions lie between two policies: over weights that both come from, or unknown."""

import pytest

from testing.factories import make_experiment, make_group, make_team, make_trajectory
from training.contracts.config import ExperimentConfig
from webapp.accounts.models import Team
from webapp.experiments.models import CheckpointRecord
from webapp.experiments.queries.weight_lineage import WeightLineage
from webapp.replay.fit_for_experiments import policy_age

pytestmark = pytest.mark.django_db


def begun_from(path: str, *, version: int = 0, seed: int = 0, **values):
    config = ExperimentConfig().model_dump(mode="json")
    config["model"]["path"] = path
    config["optimiser"]["seed"] = seed
    team = Team.objects.first() or make_team()
    return make_experiment(team=team, config=config, policy_version=version, **values)


def checkpoint(experiment, version: int) -> str:
    path = f"/runs/{experiment.pk}/{version}"
    CheckpointRecord.objects.create(experiment=experiment, step=1, policy_version=version, path=path)
    return f"{path}/model"


def recorded(experiment, version: int | None, **values):
    return make_trajectory(group=make_group(experiment=experiment), policy_version=version, **values)


def age(trajectory, experiment) -> int | None:
    return policy_age(trajectory, experiment, WeightLineage(experiment.team_id))


def test_within_one_experiment_it_is_the_difference():
    experiment = begun_from("first-desk", version=20)
    assert age(recorded(experiment, 18), experiment) == 2


def test_over_checkpoints_it_adds_up():
    first = begun_from("first-desk", version=50)
    second = begun_from(checkpoint(first, 30), version=8)
    third = begun_from(checkpoint(second, 6).removesuffix("/model"), version=4)
    assert age(recorded(first, 25), second) == 5 + 8
    assert age(recorded(first, 25), third) == 5 + 6 + 4
    assert age(recorded(second, 6), third) == 4


def test_a_sibling_counts_from_where_both_come_from():
    first = begun_from("first-desk", version=50)
    folder = checkpoint(first, 30)
    one, other = begun_from(folder, version=9), begun_from(folder, version=3)
    assert age(recorded(first, 40), one) == 10 + 9, "the first went on after the checkpoint"
    assert age(recorded(one, 7), other) == 7 + 3


def test_a_clone_begins_with_the_same_weights_unless_its_model_differs():
    first = begun_from("first-desk", version=10)
    clone = begun_from("first-desk", version=4, cloned_from=first)
    assert age(recorded(first, 6), clone) == 6 + 4
    assert age(recorded(first, 6), begun_from("other", version=4, cloned_from=first)) is None


def test_random_weights_of_another_seed_are_others():
    first = begun_from("tiny-random", version=10)
    assert age(recorded(first, 6), begun_from("tiny-random", version=4, cloned_from=first)) == 10
    assert age(recorded(first, 6), begun_from("tiny-random", version=4, seed=1, cloned_from=first)) is None


def test_without_common_weights_or_without_a_policy_it_is_unknown():
    one, other = begun_from("first-desk", version=9), begun_from("first-desk", version=9)
    assert age(recorded(one, 3), other) is None
    assert age(recorded(one, 3, source="human"), one) is None
    assert age(recorded(one, None), one) is None
    assert age(make_trajectory(), one) is None, "imported: it has no experiment"


def test_any_number_of_ages_takes_two_queries(django_assert_max_num_queries):
    first = begun_from("first-desk", version=50)
    experiments = [first]
    for version in range(1, 6):
        experiments.append(begun_from(checkpoint(experiments[-1], version), version=9))
    entries = [recorded(experiment, 1) for experiment in experiments]
    lineage = WeightLineage(first.team_id)
    with django_assert_max_num_queries(2):
        ages = [policy_age(entry, experiments[-1], lineage) for entry in entries]
    assert ages == [9 + 5 + 4 + 3 + 2 + 0, 9 + 5 + 4 + 3 + 1, 9 + 5 + 4 + 2, 9 + 5 + 3, 9 + 4, 8]
