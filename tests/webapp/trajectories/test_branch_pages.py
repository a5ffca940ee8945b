"""The tree page, the viewer's line about branches, and what its two buttons answer."""

import pytest

from testing.factories import make_trajectory, make_user
from testing.page_text import page_text
from tests.webapp.trajectories.test_branching import (  # noqa: F401 (fixtures)
    branch,
    keep,
    parent,
    qemu_experiment,
    sent,
    worker,
)
from webapp.trajectories.models import Group, Trajectory

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(client, parent):  # noqa: F811
    """A signed-in operator of the trajectory's team."""
    client.force_login(make_user("operator", team=parent.team))
    return client


def post(client, trajectory: Trajectory, **values):
    return client.post(f"/trajectories/{trajectory.pk}/branch/", {"temperature": "1.0", **values})


def test_branching_answers_where_the_tree_is(operator, parent):  # noqa: F811
    answer = post(operator, parent, turn="2", size="3", source="policy")
    group = Group.objects.get(pk=answer.json()["group"])
    assert (group.parent, group.trajectories.count()) == (parent, 3)
    page = operator.get(answer.json()["tree"].partition("#")[0])
    text = page_text(page)
    assert f'id="group-{group.pk}"' in text
    for member in group.trajectories.all():
        assert f'href="/trajectories/{member.pk}/#turn=3"' in text


@pytest.mark.parametrize(
    ("values", "status", "field", "words"),
    [
        ({"turn": "2", "size": "0"}, 400, "size", "1 to 16"),
        ({"turn": "2", "size": "many"}, 400, "size", "'many' is not a whole number"),
        ({"turn": "2", "size": "2", "temperature": "hot"}, 400, "temperature", "'hot' is not a number"),
        ({"turn": "2", "size": "2", "temperature": "9"}, 400, "temperature", "at most 2"),
        ({"turn": "-1", "size": "2"}, 400, "turn", "whole number"),
        ({"turn": "4", "size": "2"}, 409, "turn", "before turn 5"),
        ({"turn": "2", "size": "2", "source": "nobody"}, 409, "source", "'nobody'"),
        ({"turn": "2", "size": "2", "source": "oracle"}, 409, "source", "no oracle"),
    ],
)
def test_what_cannot_be_is_answered_with_its_field_and_a_reason(
    operator,
    parent,  # noqa: F811
    values,
    status,
    field,
    words,
):
    before = Trajectory.objects.count()
    answer = post(operator, parent, **values)
    assert (answer.status_code, answer.json()["field"]) == (status, field)
    assert words in answer.json()["error"]
    assert Trajectory.objects.count() == before


def test_a_strangers_trajectory_does_not_exist_and_viewers_may_only_look(client, parent):  # noqa: F811
    client.force_login(make_user("operator"))
    assert post(client, parent, turn="2", size="1").status_code == 404
    assert client.get(f"/trajectories/{parent.pk}/tree/").status_code == 404
    client.force_login(make_user("viewer", team=parent.team))
    assert post(client, parent, turn="2", size="1").status_code == 403
    assert client.post(f"/trajectories/{parent.pk}/snapshots/", {"on": "1"}).status_code == 403
    assert client.get(f"/trajectories/{parent.pk}/tree/").status_code == 200
    text = page_text(client.get(f"/trajectories/{parent.pk}/"))
    assert "data-branches-do" not in text


def test_the_viewer_says_what_is_kept_and_offers_to_branch(operator, parent):  # noqa: F811
    text = page_text(operator.get(f"/trajectories/{parent.pk}/branches/"))
    assert 'data-kept="1 2 "' in text
    assert "91 MB on machine-a" in text
    assert 'data-branches-do="open"' in text
    assert "Keep snapshots" not in text  # it has ended
    child = branch(parent, 2, 4)
    text = page_text(operator.get(f"/trajectories/{child.pk}/"))
    assert f"trajectory {parent.pk}</a> from turn 3 on" in text
    assert "1 branch" in text
    group = page_text(operator.get(f"/groups/{child.group_id}/"))
    assert f"turn 3 of trajectory {parent.pk}</a>" in group


def test_the_switch_is_on_running_machines_and_tells_why_not_elsewhere(operator, parent):  # noqa: F811
    running = make_trajectory(experiment=parent.experiment, status="running", reward=None)
    url = f"/trajectories/{running.pk}/snapshots/"
    assert 'aria-checked="false"' in page_text(operator.get(f"/trajectories/{running.pk}/branches/"))
    assert operator.post(url, {"on": "1"}).json() == {}
    assert 'aria-checked="true"' in page_text(operator.get(f"/trajectories/{running.pk}/branches/"))
    refused = operator.post(f"/trajectories/{parent.pk}/snapshots/", {"on": "1"})
    assert refused.status_code == 409
    assert "has ended" in refused.json()["error"]


def test_desktops_that_cannot_be_saved_show_nothing_of_it(client):
    plain = make_trajectory()
    client.force_login(make_user("admin", team=plain.team))
    text = page_text(client.get(f"/trajectories/{plain.pk}/"))
    assert "data-branches" not in text


def test_the_rows_show_status_reward_and_own_turns(operator, parent):  # noqa: F811
    keep(branch(parent, 2, 4), 3)
    text = page_text(operator.get(f"/trajectories/{parent.pk}/tree/rows/"))
    assert text.count("data-node=") == 2
    assert text.count("tree-cell ") == 5 + 2
    assert text.count("has-snapshot") == 2 + 1
    assert "+1.00" in text
    assert text.count("is-watched") == 1
