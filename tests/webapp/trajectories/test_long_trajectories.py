"""Pages of long trajectories: the first answer stays small, whatever lies behind it."""

import pytest
from django.test import Client

from testing.factories import make_group, make_team, make_trajectory, make_user
from testing.long_trajectories import make_long_turns
from webapp.trajectories.models import Group

pytestmark = pytest.mark.django_db
MAX_BYTES = 100 * 1024
NUM_TURNS = 500


@pytest.fixture
def group(client: Client) -> Group:
    team = make_team()
    client.force_login(make_user("viewer", team=team))
    group = make_group(team=team, size=4)
    for member in range(4):
        make_long_turns(make_trajectory(group=group, member=member, turns=0), NUM_TURNS)
    return group


def test_the_first_answers_are_small_and_the_rest_comes_in_pieces(
    client: Client, group: Group, django_assert_max_num_queries
):
    watched = group.trajectories.order_by("pk").first()
    viewer = f"/trajectories/{watched.pk}/"
    with django_assert_max_num_queries(24):
        page = client.get(viewer).content
    assert len(page) <= MAX_BYTES
    assert len(client.get(f"/groups/{group.pk}/").content) <= MAX_BYTES
    lane = client.get(f"/groups/{group.pk}/lane/?watched={watched.pk}&first=460").content.decode()
    assert f"{viewer}#turn=461" in lane
    assert f"{viewer}#turn=500" in lane
    assert f'{viewer}#turn=460"' not in lane
    (turn,) = client.get(f"{viewer}turns/?indexes=499").json()["turns"]
    assert "thought 500" in turn["card"]
    assert "tok " not in turn["card"]


def test_turns_of_a_group_are_turned_over(client: Client, group: Group):
    first = client.get(f"/groups/{group.pk}/").content.decode()
    assert 'href="?from=40#turns"' in first
    last = client.get(f"/groups/{group.pk}/?from=480").content.decode()
    assert 'href="?from=440#turns"' in last
    assert ">500</td>" in last
    assert 'href="?from=520' not in last


def test_one_huge_text_does_not_make_a_huge_page(client: Client):
    team = make_team()
    client.force_login(make_user("viewer", team=team))
    trajectory = make_trajectory(team=team, turns=0)
    make_long_turns(trajectory, 6, num_tokens=20_000, num_characters=300_000)
    url = f"/trajectories/{trajectory.pk}/"
    assert len(client.get(url).content) <= MAX_BYTES
    answer = client.get(f"{url}turns/3/completion/?from=19500").json()
    assert (answer["tokens"].count("<span"), answer["next"]) == (500, None)
    texts = client.get(f"{url}turns/3/completion/?texts=1").json()["texts"]
    assert len(texts["completion"]) == 300_000
    assert client.get(f"{url}turns/6/completion/").status_code == 404
