"""The colour of a trajectory follows its score, and the terms of a turn add up as printed."""

import re

import pytest
from django.test import Client

from testing.factories import make_experiment, make_group, make_team, make_trajectory, make_user
from testing.page_text import page_text
from webapp.accounts.models import Role
from webapp.trajectories.templatetags.outcomes import turn_share

pytestmark = pytest.mark.django_db


@pytest.fixture
def team(client: Client):
    team = make_team()
    client.force_login(make_user(Role.VIEWER, team=team))
    return team


ENDS = [
    ("terminated", 1.0, "good", "Solved"),
    ("truncated", 1.0, "warning", "Solved at a limit"),
    ("terminated", 0.0, "bad", "Failed"),
    ("truncated", 0.6, "bad", "Failed"),
    ("errored", None, "neutral", "Errored"),
    ("running", None, "active", "Running"),
]


@pytest.mark.parametrize(("status", "score", "tone", "label"), ENDS)
def test_pills_follow_the_score(
    team, client: Client, status: str, score: float | None, tone: str, label: str
):
    trajectory = make_trajectory(team=team, status=status, reward=score)
    for address in ("/trajectories/", f"/trajectories/{trajectory.pk}/", f"/groups/{trajectory.group_id}/"):
        page = page_text(client.get(address))
        found = re.search(
            rf'<span class="pill tone-(\w+)" data-status="{status}"[^>]*>.*?</span>\s*([^<]*?)\s*</span>',
            page,
        )
        assert found, address
        assert found.groups() == (tone, label), address


def test_dots_of_a_group_card_follow_the_score(team, client: Client):
    group = make_group(experiment=make_experiment(team=team), size=3)
    for member, (status, score) in enumerate((("terminated", 0.0), ("terminated", 1.0), ("truncated", 1.0))):
        make_trajectory(group=group, member=member, status=status, reward=score)
    page = page_text(client.get(f"/experiments/{group.experiment_id}/?tab=groups"))
    assert re.findall(r'class="member tone-(\w+)"', page) == ["bad", "good", "warning"]


def test_the_list_is_narrowed_to_what_a_limit_ended(team, client: Client):
    ended, limit, part = (
        make_trajectory(team=team, status=status, reward=score).pk
        for status, score in (("terminated", 1.0), ("truncated", 1.0), ("terminated", 0.6))
    )

    def shown(success: str) -> set[int]:
        page = page_text(client.get(f"/trajectories/?success={success}"))
        return {pk for pk in (ended, limit, part) if f'href="/trajectories/{pk}/"' in page}

    assert [shown(one) for one in ("yes", "ended", "limit", "no")] == [
        {ended, limit},
        {ended},
        {limit},
        {part},
    ]


@pytest.mark.parametrize(
    ("contribution", "text"),
    [(0.1, ""), (0.1 / 6, " / 6 turns"), (0.05, " / 2 turns"), (0.04, " × 0.4"), (0.0, "")],
)
def test_a_turns_share_of_a_term_is_printed(contribution: float, text: str):
    assert turn_share({"weight": 0.1, "value": 1.0, "contribution": contribution}) == text


def test_the_viewer_prints_what_adds_up(team, client: Client):
    trajectory = make_trajectory(team=team, turns=6)
    term = {"name": "parsable.v1", "value": 1.0, "weight": 0.1, "contribution": 0.1 / 6, "note": ""}
    trajectory.turns.update(terms=[term])
    page = page_text(client.get(f"/trajectories/{trajectory.pk}/"))
    assert "0.1 × 1 / 6 turns =" in page
