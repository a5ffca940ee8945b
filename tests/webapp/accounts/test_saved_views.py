"""Views of list pages: whose they are, what they hold, who may delete them."""

import pytest
from django.test import Client

from testing.factories import make_team, make_user
from webapp.accounts.models import Role, SavedView

pytestmark = pytest.mark.django_db


@pytest.fixture
def team():
    return make_team()


def as_(team, role: Role) -> Client:
    client = Client()
    client.force_login(make_user(role, team=team))
    return client


def save(client: Client, name: str, query: str = "", **more: str):
    return client.post("/views/", {"page": "experiments", "name": name, "query": query, **more})


def test_a_view_is_the_query_without_its_place_in_the_list(team):
    answer = save(as_(team, Role.VIEWER), "Mine", "?status=failed&page=3&hide=owner&q=&tag=a")
    assert answer["Location"] == "/experiments/?hide=owner&status=failed&tag=a"


def test_ones_own_are_seen_by_oneself_and_the_teams_by_the_team(team):
    annotator, viewer, stranger = (
        as_(team, Role.ANNOTATOR),
        as_(team, Role.VIEWER),
        as_(make_team(), Role.ADMIN),
    )
    save(annotator, "private-view")
    save(annotator, "shared-view", for_team="on")

    def seen(client: Client) -> list[bool]:
        page = client.get("/experiments/").content.decode()
        return [name in page for name in ("private-view", "shared-view")]

    assert [seen(client) for client in (annotator, viewer, stranger)] == [
        [True, True], [False, True], [False, False],
    ]  # fmt: skip
    for name, codes in (("private-view", (404, 404, 302)), ("shared-view", (403, 404, 302))):
        url = f"/views/{SavedView.objects.get(name=name).pk}/delete/"
        assert tuple(client.post(url).status_code for client in (viewer, stranger, annotator)) == codes
    assert save(viewer, "for all", for_team="on").status_code == 403
    assert not SavedView.objects.exists()


def test_the_same_name_replaces_a_view_and_broken_ones_are_refused(team):
    client = as_(team, Role.ANNOTATOR)
    for query in ("tag=a", "tag=b"):
        save(client, "twice", query, for_team="on")
    assert SavedView.objects.get().query == "tag=b"
    save(client, "x" * 61)
    save(client, "long", "q=" + "x" * 1000)
    assert SavedView.objects.count() == 1
    assert client.post("/views/", {"page": "nowhere", "name": "x"}).status_code == 400


@pytest.mark.parametrize("path", ["/experiments/", "/trajectories/", "/replay/"])
def test_every_list_offers_its_views(team, path):
    client = as_(team, Role.VIEWER)
    client.post("/views/", {"page": path.strip("/"), "name": "kept-view", "query": "sort=oldest"})
    page = client.get(path).content.decode()
    assert 'href="?sort=oldest"' in page
    assert "kept-view" in page


def test_the_api_saves_lists_and_deletes_views(team):
    client = as_(team, Role.ANNOTATOR)
    body = {"page": "replay", "name": "by api", "query": "verdict=gold", "for_team": True}
    made = client.post("/api/v1/views", body, content_type="application/json").json()
    assert (made["query"], made["is_team"]) == ("verdict=gold", True)
    assert client.get("/api/v1/views", {"page": "replay"}).json() == [made]
    assert client.get("/api/v1/views", {"page": "experiments"}).json() == []
    assert client.delete(f"/api/v1/views/{made['id']}").status_code == 204
