"""What the agent solved and ended is kept apart from what a limit ended, wherever success stands."""

import io
import json
import re
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from testing.evaluation_rows import make_evaluation
from testing.factories import make_experiment, make_team, make_user
from webapp.accounts.models import Role
from webapp.experiments.models import CheckpointRecord, Evaluation, Experiment
from webapp.experiments.sweep_plan import GREEDY
from webapp.reports.frozen_content import solved_text
from webapp.reports.model_card import model_card
from webapp.sweeps.queries.results import curves_of

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


def text_of(client: Client, address: str) -> str:
    page = client.get(address).content.decode().replace("&nbsp;", " ").replace("&#x27;", "'")
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


@pytest.fixture
def babbler(viewer) -> Experiment:
    """One of ten tasks solved before; after, five by the agent and four more at a limit."""
    experiment = make_experiment(team=viewer, status="finished", step=20)
    before = {f"menu-{place}": (int(place < 1), 1) for place in range(10)}
    after = {f"menu-{place}": (int(place < 9), 1, 0, int(4 < place < 9)) for place in range(10)}
    make_evaluation(experiment, name="before", tasks=before, temperature=0.0)
    make_evaluation(experiment, name="after", step=20, tasks=after, temperature=0.0)
    return experiment


def test_the_headline_is_what_the_agent_ended(client: Client, babbler: Experiment):
    page = text_of(client, f"/experiments/{babbler.pk}/")
    assert "Greedy 50 % [19, 81], n = 10 4 more at a limit (90 % by OSWorld's rule)" in page
    assert "Solved and ended by the agent" in page
    assert "4 tasks fixed, 0 regressed of 10, p = 0.12; +40 points" in page


def test_lists_and_comparisons_say_both(client: Client, babbler: Experiment):
    listed = text_of(client, "/experiments/")
    assert "10 % → 50 % +40 points +4 at a limit" in listed
    other = make_experiment(team=babbler.team)
    compared = text_of(client, f"/experiments/compare/?id={babbler.pk}&id={other.pk}")
    assert "50 % [19, 81], n = 10 4 more at a limit (90 % by OSWorld's rule)" in compared
    tab = text_of(client, f"/experiments/{babbler.pk}/?tab=evaluations")
    assert "50.0 % [19, 81], 5 / 10 4 90.0 %" in tab


def test_the_matrix_marks_them_and_osworlds_rule_can_be_chosen(client: Client, babbler: Experiment):
    page = text_of(client, f"/experiments/tasks/?id={babbler.pk}")
    assert "Greedy: 4 fixed, 0 regressed, p = 0.12" in page
    assert "Solved at a limit 4" in page
    assert page.count("· ~") == 4
    by_state = text_of(client, f"/experiments/tasks/?id={babbler.pk}&rule=state")
    assert "Greedy: 8 fixed, 0 regressed, p = 0.0078" in by_state


def test_charts_show_what_the_agent_ended(client: Client, babbler: Experiment):
    *_, after = client.get(f"/experiments/{babbler.pk}/metrics/").json()["evaluations"]
    assert (after["success"], after["num_success"], after["num_at_limit"]) == (0.5, 5, 4)


def test_api_and_command_give_the_change_by_both_rules(client: Client, babbler: Experiment):
    answered = client.get(f"/api/v1/experiments/{babbler.pk}").json()
    for found in (answered, described(babbler)):
        ended, state = found["success_change"], found["success_change_of_state"]
        assert (ended["rule"], ended["greedy"]["fixed"]) == ("ended", 4)
        assert (state["rule"], state["greedy"]["fixed"]) == ("state", 8)


@pytest.mark.parametrize(("num_fixed", "tone"), [(4, "neutral"), (8, "good")])
def test_a_gain_is_coloured_by_its_paired_test(client: Client, viewer, num_fixed: int, tone: str):
    experiment = make_experiment(team=viewer, status="finished", step=20)
    for name, number in (("before", 1), ("after", 1 + num_fixed)):
        tasks = {f"menu-{place}": (int(place < number), 1) for place in range(100)}
        make_evaluation(experiment, name=name, step=20 * (name == "after"), tasks=tasks, temperature=0.0)
    page = client.get("/experiments/").content.decode()
    assert f'<span class="gain text-tone tone-{tone}">+{num_fixed} points</span>' in page


def test_one_point_is_singular(client: Client, viewer):
    experiment = make_experiment(team=viewer, status="finished", step=20)
    for name, number in (("before", 1), ("after", 2)):
        tasks = {f"menu-{place}": (int(place < number), 1) for place in range(100)}
        make_evaluation(experiment, name=name, step=20 * (name == "after"), tasks=tasks, temperature=0.0)
    assert "+1 point " in text_of(client, "/experiments/")
    assert "+1 point," in text_of(client, f"/experiments/{experiment.pk}/")


MISSING = "65 of 72 without a score"


def test_an_evaluation_that_misses_too_much_says_so_everywhere(client: Client, viewer):
    """Seven of seven scored trajectories solved reads "100 %": the flag stands wherever the number does."""
    experiment = make_experiment(team=viewer, status="finished", step=20)
    other = make_experiment(team=viewer, status="finished")
    make_evaluation(experiment, name="before", won=3, total=7, temperature=0.0)
    after = make_evaluation(
        experiment, name="after", step=20, won=7, total=7, temperature=0.0, num_requested=72, num_errored=65
    )
    for address in (
        f"/experiments/{experiment.pk}/",
        f"/experiments/{experiment.pk}/?tab=evaluations",
        "/experiments/",
        f"/experiments/compare/?id={experiment.pk}&id={other.pk}",
    ):
        assert MISSING in text_of(client, address), address
    *_, shown = client.get(f"/experiments/{experiment.pk}/metrics/").json()["evaluations"]
    assert shown["missing"] == MISSING
    answered = client.get(f"/api/v1/experiments/{experiment.pk}").json()
    for found in (answered, described(experiment)):
        whole, part = found["evaluations"]
        assert (whole["num_requested"], whole["num_errored"], whole["is_complete"]) == (7, 0, True)
        assert (part["num_requested"], part["num_errored"], part["is_complete"]) == (72, 65, False)
    curves = curves_of([experiment.pk], GREEDY)[experiment.pk]
    assert curves == {0: pytest.approx(3 / 7)}, "no arm of a sweep wins by it"
    assert solved_text(after).endswith(f", {MISSING}")
    checkpoint = CheckpointRecord.objects.create(
        experiment=experiment, step=20, policy_version=21, path="/data/x"
    )
    assert model_card(checkpoint, "bfloat16").count(MISSING) == 1


def test_an_evaluation_from_before_it_was_counted_claims_nothing(viewer):
    found = make_evaluation(make_experiment(team=viewer), num_requested=72, num_errored=65)
    found.num_requested = found.num_errored = None
    assert (found.is_complete, found.missing_text) == (True, "")
