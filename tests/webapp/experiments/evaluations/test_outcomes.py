"""What the agent solved and ended is told apart from what a limit ended, wherever success stands."""

import io
import json
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from testing.evaluation_rows import make_evaluation
from testing.factories import make_experiment, make_team, make_user
from webapp.accounts.models import Role
from webapp.experiments.models import Evaluation, Experiment

pytestmark = pytest.mark.django_db

BABBLED = {"menu-1": (1, 1, 0, 1), "menu-2": (1, 1), "menu-3": (1, 1, 0, 1), "menu-4": (0, 1)}
"""Solved: one by the agent, two at a limit."""


@pytest.fixture
def viewer(client: Client):
    team = make_team()
    client.force_login(make_user(Role.VIEWER, team=team))
    return team


def described(experiment: Experiment) -> dict[str, Any]:
    output = io.StringIO()
    call_command("experiment", str(experiment.pk), stdout=output)
    return json.loads(output.getvalue())


def test_command_and_api_keep_both(client: Client, viewer):
    experiment = make_experiment(team=viewer, status="finished")
    make_evaluation(experiment, tasks=BABBLED)
    (printed,) = described(experiment)["evaluations"]
    (answered,) = client.get(f"/api/v1/experiments/{experiment.pk}").json()["evaluations"]
    for found in (printed, answered):
        assert (found["success"], found["solved"]) == (0.75, 0.25)
        assert (found["num_success"], found["num_solved_at_limit"]) == (3, 2)
        assert (found["truncated_share"], found["unparsable_share"]) == (0.5, 0.25)
        assert found["solved_low"] < 0.25 < found["solved_high"]


def test_an_older_evaluation_claims_nothing_that_was_not_counted(client: Client, viewer):
    experiment = make_experiment(team=viewer, status="finished")
    make_evaluation(experiment, tasks=BABBLED)
    names = ("num_solved_at_limit", "num_truncated", "num_turns", "num_unparsable_turns", "solved")
    Evaluation.objects.update(**dict.fromkeys(names))
    (printed,) = described(experiment)["evaluations"]
    assert {printed[name] for name in ("solved", "truncated_share", "unparsable_share")} == {None}
    assert printed["success"] == 0.75
