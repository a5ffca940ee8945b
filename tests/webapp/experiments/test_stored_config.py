"""`Experiment.settings`: a stored config, typed, also when another version of Deskhand stored it."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from testing.evaluation_rows import make_evaluation
from testing.factories import make_experiment, make_group, make_team, make_trajectory, make_user
from training.contracts.config import ConfigError, ExperimentConfig
from webapp.accounts.models import Team
from webapp.checkpoints.services.evaluations import HowToEvaluate, request_evaluation
from webapp.dispatcher.services.waiting_trajectories import fill_free_slots
from webapp.experiment_pages.part_contexts import PARTS, TABS
from webapp.experiments.models import CheckpointRecord, Experiment
from webapp.experiments.services.attempts import lose_stale_experiments
from webapp.trajectories.queries.desktop_demand import waiting_desktops

pytestmark = pytest.mark.django_db


def stored(**changes: Any) -> dict[str, Any]:
    """A complete config as rows hold it, with whole sections replaced or (None) left out."""
    values = {**ExperimentConfig().model_dump(mode="json"), **changes}
    return {name: section for name, section in values.items() if section is not None}


OLD = {
    "algorithm": {"name": "grpo", "num_steps": 7, "loss_flavour": "vanilla"},
    "desktops": {"provider": "docker", "num_desktops": 3, "max_turns": "many", "qemu": {"memory_mb": "all"}},
    "evaluation": {"temperature": 0},
    "experience_pool": {"size": 100},
    "rewards": "task-score",
}
"""What an older version may have stored: sections, keys and choices that are gone, and few of today's."""


@pytest.fixture
def team() -> Team:
    return make_team()


@pytest.fixture
def old(team: Team) -> Experiment:
    return make_experiment(team=team, config=OLD)


def test_a_stored_config_is_read_once_and_as_it_was_launched():
    config = ExperimentConfig(evaluation={"temperature": 0.0, "every": 5})
    experiment = make_experiment(config=config.model_dump(mode="json"))
    experiment.refresh_from_db()
    assert experiment.settings == config
    assert experiment.settings is experiment.settings
    assert experiment.config_problems == {}


def test_what_an_older_version_stored_is_read_as_far_as_it_is_known(old: Experiment):
    settings, default = old.settings, ExperimentConfig()
    assert (settings.algorithm.num_steps, settings.desktops.num_desktops) == (7, 3)
    assert settings.evaluation.temperature == 0
    assert settings.desktops.provider == default.desktops.provider
    assert settings.desktops.max_turns == default.desktops.max_turns
    assert settings.desktops.qemu == default.desktops.qemu
    assert settings.rewards == default.rewards
    assert settings.sampling == default.sampling


def test_every_value_that_cannot_be_read_is_named(old: Experiment):
    assert set(old.config_problems) == {
        "algorithm.loss_flavour",
        "desktops.provider",
        "desktops.max_turns",
        "desktops.qemu.memory_mb",
        "experience_pool",
        "rewards",
    }


def test_a_combination_that_is_refused_today_is_shown_as_it_was_run():
    algorithm = ExperimentConfig().algorithm.model_dump(mode="json") | {"num_steps": 0}
    experiment = make_experiment(config=stored(algorithm=algorithm))
    assert experiment.settings.algorithm.num_steps == 0
    assert set(experiment.config_problems) == {"algorithm.num_steps"}


@pytest.mark.parametrize("values", [{}, [], None, "text"])
def test_a_row_that_holds_no_config_at_all_reads_as_the_defaults(values: Any):
    assert Experiment(config=values).settings == ExperimentConfig()


@pytest.fixture
def operator(client: Client, team: Team) -> Client:
    user = make_user("operator", team=team)
    client.force_login(user)
    return client


@pytest.fixture
def old_with_rows(old: Experiment) -> Experiment:
    group = make_group(experiment=old)
    make_trajectory(group=group)
    CheckpointRecord.objects.create(experiment=old, step=2, policy_version=2, path="/checkpoints/2")
    make_evaluation(old)
    return old


def test_no_page_fails_on_an_old_config(operator: Client, old_with_rows: Experiment, team: Team):
    pk = old_with_rows.pk
    other = make_experiment(team=team)
    detail = reverse("experiment-detail", args=[pk])
    trajectory = old_with_rows.trajectories.get()
    urls = [
        *(f"{detail}?tab={tab}" for tab in TABS),
        *(reverse("experiment-part", args=[pk, part]) for part in PARTS),
        reverse("experiment-metrics", args=[pk]),
        reverse("experiment-yaml", args=[pk]),
        f"{reverse('experiment-compare')}?id={pk}&id={other.pk}",
        f"{reverse('experiment-launch')}?clone={pk}",
        f"{reverse('experiment-launch')}?clone={pk}&checkpoint={old_with_rows.checkpoints.get().pk}",
        reverse("experiment-list"),
        reverse("queue-show"),
        reverse("trajectory-detail", args=[trajectory.pk]),
        f"/api/v1/experiments/{pk}",
        f"/api/v1/trajectories/{trajectory.pk}",
    ]
    answers = {url: operator.get(url).status_code for url in urls}
    assert answers == dict.fromkeys(urls, 200)


def test_the_config_page_and_its_file_say_what_could_not_be_read(operator: Client, old: Experiment):
    for url in (f"/experiments/{old.pk}/?tab=config", f"/experiments/{old.pk}/config.yaml"):
        text = operator.get(url).content.decode()
        assert "desktops.max_turns" in text
        assert "many" in text
        assert "experience_pool" in text


def test_a_clone_says_what_it_does_not_take_over(operator: Client, old: Experiment):
    page = operator.get(f"{reverse('experiment-launch')}?clone={old.pk}").content.decode()
    assert "algorithm.loss_flavour" in page
    assert "experience_pool" in page


def test_a_config_that_is_only_partly_read_is_never_evaluated_by_itself(old_with_rows: Experiment):
    """Defaults in the place of what was trained with would measure something else."""
    with pytest.raises(ConfigError, match=r"algorithm\.loss_flavour"):
        request_evaluation(
            checkpoint=old_with_rows.checkpoints.get(), user=None, how=HowToEvaluate(num_tasks=3)
        )


def test_the_dispatcher_goes_on_beside_an_old_config(old: Experiment):
    make_trajectory(experiment=old, status="queued", turns=0)
    fill_free_slots()
    assert lose_stale_experiments() == []
    assert sum(waiting_desktops().values()) == 1


def test_a_greedy_experiment_offers_greedy_evaluations_of_its_checkpoints(operator: Client, team: Team):
    greedy = ExperimentConfig(evaluation={"temperature": 0.0})
    experiment = make_experiment(team=team, config=greedy.model_dump(mode="json"))
    response = operator.get(reverse("experiment-part", args=[experiment.pk, "checkpoints"]))
    assert response.context["sampling"] == "greedy"
