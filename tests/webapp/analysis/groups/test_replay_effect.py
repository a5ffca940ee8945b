"""What injections did to their tasks, and what the other families paid, on the experiment's page."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from testing.evaluation_rows import make_evaluation
from testing.factories import (
    make_experiment,
    make_group,
    make_replay_entry,
    make_task,
    make_team,
    make_trajectory,
    make_user,
)
from webapp.accounts.models import Role, Team
from webapp.analysis.groups.replay_effect import replay_effect
from webapp.experiments.models import Experiment
from webapp.replay.models import ReplayUseRecord

pytestmark = pytest.mark.django_db


@pytest.fixture
def team() -> Team:
    return make_team()


@pytest.fixture
def operator(client: Client, team: Team) -> User:
    user = make_user(Role.OPERATOR, team=team)
    client.force_login(user)
    return user


@pytest.fixture
def experiment(team: Team) -> Experiment:
    """copy fails until it is injected in step 2, then it is solved; form is forgotten meanwhile."""
    made = make_experiment(team=team)
    copy, form = (make_task(family=name) for name in ("copy", "form"))
    for step, solves_copy, solves_form in ((1, 0, 1), (2, 0, 1), (3, 1, 1), (40, 1, 0)):
        for task, solved in ((copy, solves_copy), (form, solves_form)):
            group = make_group(experiment=made, step=step, task=task)
            for _ in range(2):
                make_trajectory(group=group, step=step, reward=float(solved))
            if step == 2 and task is copy:
                ReplayUseRecord.objects.create(
                    entry=make_replay_entry(team=team), experiment=made, group=group, step=2, advantage=1.0
                )
    return made


def test_a_task_is_compared_around_its_first_injection(experiment: Experiment) -> None:
    (row,) = replay_effect(experiment).tasks
    assert (row.injections, row.first_step) == (1, 2)
    assert (row.before.num, row.before.share, row.after.num, row.after.share) == (4, 0.0, 4, 1.0)
    assert row.change == 1


def test_a_family_without_an_injection_shows_the_price(experiment: Experiment) -> None:
    copy, form = replay_effect(experiment).families
    assert (copy.name, copy.injections, copy.change) == ("copy", 1, 1.0)
    assert (form.name, form.injections, form.before.share, form.after.share) == ("form", 0, 1.0, 0.0)
    assert (form.after.num, form.change, form.held_out_change) == (2, -1.0, None)


def test_held_out_success_stands_beside_it_where_it_was_measured(experiment: Experiment) -> None:
    for name, won in (("before", 8), ("after", 2)):
        make_evaluation(experiment=experiment, name=name, temperature=1.0, per_family={"form": [won, 10, 0]})
    form = replay_effect(experiment).families[1]
    assert form.held_out_change == pytest.approx(-0.6)


def test_the_page_tells_it_and_says_when_nothing_was_injected(
    client: Client, operator, experiment: Experiment, team: Team
) -> None:
    page = client.get(f"/experiments/{experiment.pk}/", {"tab": "replay"}).content.decode()
    assert "1 injection" in page
    assert "-1.00" in page.replace("−", "-")
    empty = client.get(f"/experiments/{make_experiment(team=team).pk}/parts/replay/").content.decode()
    assert "No entry was injected" in empty
