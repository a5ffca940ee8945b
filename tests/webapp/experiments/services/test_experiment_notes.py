"""Names, tags and the archive of experiments: on the pages, and by the API."""

import pytest
from django.test import Client

from testing.factories import make_experiment, make_team, make_user
from webapp.accounts.models import Role, Team
from webapp.experiments.models import Experiment

pytestmark = pytest.mark.django_db


@pytest.fixture
def team() -> Team:
    return make_team()


@pytest.fixture
def operator(client: Client, team: Team) -> None:
    client.force_login(make_user(Role.OPERATOR, team=team))


def names_in(client: Client, **query: str) -> set[str]:
    page = client.get("/experiments/", query).content.decode()
    return {name for name in ("alpha", "beta", "gamma") if f">{name}<" in page}


def test_the_list_is_filtered_by_tag_and_leaves_archived_ones_out(client: Client, operator, team: Team):
    alpha = make_experiment(team=team, name="alpha", status="finished", tags=["paper", "base"])
    make_experiment(team=team, name="beta", tags=["paper-two"])
    make_experiment(name="gamma", tags=["paper"])
    assert names_in(client) == {"alpha", "beta"}
    assert names_in(client, tag="Paper") == {"alpha"}
    client.post("/experiments/archive/", {"id": alpha.pk})
    assert names_in(client) == {"beta"}
    assert names_in(client, archived="archived") == {"alpha"}
    assert names_in(client, archived="all") == {"alpha", "beta"}
    client.post("/experiments/archive/", {"id": alpha.pk, "restore": "1"})
    assert names_in(client) == {"alpha", "beta"}


def test_one_that_has_not_ended_is_not_archived(client: Client, operator, team: Team):
    running = make_experiment(team=team, status="running")
    page = client.post("/experiments/archive/", {"id": running.pk}, follow=True).content.decode()
    assert "has not ended yet" in page
    running.refresh_from_db()
    assert running.archived_at is None


def test_a_tag_is_added_to_many_and_to_none_of_another_team(client: Client, operator, team: Team):
    mine = [make_experiment(team=team, tags=tags) for tags in ([], ["old"], ["new"])]
    theirs = make_experiment()
    client.post("/experiments/tag/", {"id": [row.pk for row in (*mine, theirs)], "tag": " NEW "})
    for row in (*mine, theirs):
        row.refresh_from_db()
    assert [row.tags for row in (*mine, theirs)] == [["new"], ["old", "new"], ["new"], []]


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ({"name": "  "}, "needs a name"),
        ({"name": "x" * 121}, "at most 120"),
        ({"name": "ok", "tags": "x" * 41}, "longer than 40"),
        ({"name": "ok", "tags": ",".join(str(n) for n in range(13))}, "at most 12"),
    ],
)
def test_what_cannot_be_stored_changes_nothing(
    client: Client, operator, team: Team, typed: dict, problem: str
):
    experiment = make_experiment(team=team, name="as it was", tags=["kept"])
    page = client.post(f"/experiments/{experiment.pk}/edit/", typed, follow=True).content.decode()
    assert problem in page
    experiment.refresh_from_db()
    assert (experiment.name, experiment.tags) == ("as it was", ["kept"])


def test_the_api_renames_tags_archives_and_deletes(client: Client, operator, team: Team):
    experiment = make_experiment(team=team, status="running", note="stays")
    url = f"/api/v1/experiments/{experiment.pk}"

    def patch(body: dict):
        return client.patch(url, body, content_type="application/json")

    answer = patch({"name": "renamed", "tags": ["A", "a", "b"]}).json()
    assert (answer["name"], answer["tags"], answer["note"]) == ("renamed", ["a", "b"], "stays")
    assert patch({"archived": True}).status_code == 409
    assert client.delete(url).status_code == 409
    Experiment.objects.update(status="finished")
    assert patch({"archived": True}).json()["archived_at"]
    assert client.get("/api/v1/experiments", {"archived": "false"}).json()["items"] == []
    assert len(client.get("/api/v1/experiments", {"tag": "b", "archived": "true"}).json()["items"]) == 1
    assert client.delete(url).status_code == 204
    assert client.get(url).status_code == 404
