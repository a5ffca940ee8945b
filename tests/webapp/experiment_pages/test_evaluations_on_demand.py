"""An experiment that only evaluates a checkpoint of another one names it on its own pages."""

import re

import pytest
from django.test import Client

from testing.evaluation_rows import make_evaluation
from testing.factories import make_experiment, make_group, make_team, make_trajectory, make_user
from testing.page_text import page_text
from webapp.accounts.models import Role
from webapp.analysis.evaluations.task_matrix import columns_of
from webapp.experiments.models import Experiment

pytestmark = pytest.mark.django_db


@pytest.fixture
def asked(client: Client) -> Experiment:
    team = make_team()
    client.force_login(make_user(Role.VIEWER, team=team))
    checkpoint = make_experiment(team=team).checkpoints.create(step=10, policy_version=11, path="/none/10")
    found = make_experiment(team=team, evaluates=checkpoint)
    make_evaluation(found, won=30, total=40, temperature=0.0)
    return found


def test_its_table_and_its_column_say_which_step_was_measured(client: Client, asked: Experiment) -> None:
    page = page_text(client.get(f"/experiments/{asked.pk}/?tab=evaluations"))
    row = re.sub("<[^>]+>", " ", page[page.index('<tr id="evaluation-') :]).split()
    assert row[:4] == ["On", "demand", "10", "v11"]
    assert [column.title for column in columns_of([asked])] == ["Step 10"]


def test_its_overview_shows_the_groups_that_it_has(client: Client, asked: Experiment) -> None:
    group = make_group(experiment=asked, purpose="evaluation")
    make_trajectory(group=group, purpose="evaluation")
    assert f'id="group-{group.pk}"' in page_text(
        client.get(f"/experiments/{asked.pk}/parts/groups/?tab=overview")
    )
