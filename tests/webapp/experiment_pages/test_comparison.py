"""Experiments side by side."""

import pytest
from django.test import Client

from testing.factories import make_experiment, make_team, make_user
from training.contracts.config import ExperimentConfig
from webapp.accounts.models import Role
from webapp.experiment_pages.comparison import MAX_COMPARED, differences

pytestmark = pytest.mark.django_db


def with_rate(rate: float) -> dict:
    config = ExperimentConfig()
    optimiser = config.optimiser.model_copy(update={"learning_rate": rate})
    return config.model_copy(update={"optimiser": optimiser}).model_dump(mode="json")


@pytest.fixture
def viewer(client: Client):
    team = make_team()
    client.force_login(make_user(Role.VIEWER, team=team))
    return team


def test_only_knobs_that_differ_are_listed():
    slow, fast = make_experiment(config=with_rate(1e-4)), make_experiment(config=with_rate(1e-3))
    found = [(item.knob.path, item.values) for item in differences([slow, fast])]
    assert found == [("optimiser.learning_rate", ("0.0001", "0.001"))]
    assert differences([slow, slow]) == []


def test_the_page_shows_the_experiments_in_the_order_of_the_url(client: Client, viewer):
    first = make_experiment(team=viewer, name="Slow rate", config=with_rate(1e-4))
    second = make_experiment(team=viewer, name="Fast rate", config=with_rate(1e-3))
    page = client.get(f"/experiments/compare/?id={second.pk}&id={first.pk}").content.decode()
    assert page.index("Fast rate") < page.index("Slow rate")
    assert "optimiser.learning_rate" in page
    assert f"/experiments/{first.pk}/metrics/" in page


def test_another_teams_experiment_is_not_shown_and_the_page_says_that_one_is_missing(client: Client, viewer):
    mine, other = make_experiment(team=viewer, name="Mine"), make_experiment(name="Theirs")
    page = client.get(f"/experiments/compare/?id={mine.pk}&id={other.pk}").content.decode()
    assert "Theirs" not in page
    assert "1 of the chosen experiments is not shown" in page
    assert "Nothing to compare yet" in page


def test_a_page_of_many_takes_few_queries(client: Client, viewer, django_assert_max_num_queries):
    ids = [make_experiment(team=viewer).pk for _ in range(MAX_COMPARED + 1)]
    query = "&".join(f"id={pk}" for pk in ids)
    with django_assert_max_num_queries(10):
        page = client.get(f"/experiments/compare/?{query}").content.decode()
    assert page.count("data-run=") == MAX_COMPARED
