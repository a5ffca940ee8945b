"""One row of the inbox stands for near-identical entries, and one key decides them with one undo."""

import json

import pytest
from django.http import QueryDict
from django.test import Client

from testing.factories import make_replay_entry, make_team
from webapp.replay.filters import EntryFilter
from webapp.replay.models import ReplayEntry
from webapp.replay.queries.queue import queue_after

pytestmark = pytest.mark.django_db


def entries(team, *clusters: int | None, **values) -> list[ReplayEntry]:
    found = [make_replay_entry(team=team, **values) for _ in clusters]
    for entry, cluster in zip(found, clusters, strict=True):
        entry.cluster = cluster
        entry.save()
    return found


def queue(team, query: str = "", before: int | None = None, limit: int = 50) -> list[tuple[int, int]]:
    chosen = EntryFilter.from_query(QueryDict(query))
    rows = queue_after(team.pk, chosen, before, limit)
    return [(row.pk, getattr(row, "num_alike", 0)) for row in rows]


@pytest.mark.parametrize("order", ["", "sort=best", "sort=shortest"])
def test_a_row_stands_for_its_cluster_and_pages_meet_each_once(order):
    team = make_team()
    first, second, third, lone, new = (entry.pk for entry in entries(team, 7, 9, 7, 11, None))
    other = entries(make_team(), 7)
    assert sorted(queue(team, order)) == sorted([(second, 0), (third, 1), (lone, 0), (new, 0)])
    assert other[0].pk not in dict(queue(team, order))
    seen, before = [], None
    while page := queue(team, order, before, 1):
        seen += page
        before = page[-1][0]
    assert seen == queue(team, order)
    assert len(queue(team, f"cluster=7&{order}")) == 2, "a cluster itself is shown entry by entry"
    assert first in dict(queue(team, f"cluster=7&{order}"))


def test_an_entry_without_bad_turns_stands_for_one_with_them():
    team = make_team()
    good, flawed = entries(team, 7, 7)
    ReplayEntry.objects.filter(pk=flawed.pk).update(has_bad_turns=True)
    assert queue(team) == [(good.pk, 1)]


def test_one_key_decides_the_cluster_and_one_undo_takes_it_back(client: Client, operator):
    team = operator.memberships.get().team
    rows = entries(team, 7, 7, 7, 9)
    gold = entries(team, 7)[0]
    ReplayEntry.objects.filter(pk=gold.pk).update(verdict="gold")
    body = {"verdict": "rejected", "alike": True, "expected_verdict": "inbox"}
    answer = client.post(f"/replay/{rows[2].pk}/label/", json.dumps(body), content_type="application/json")
    assert answer.json()["number"] == 3
    verdicts = ReplayEntry.objects.filter(team=team).order_by("pk").values_list("verdict", flat=True)
    assert list(verdicts) == ["rejected"] * 3 + ["inbox", "gold"]
    undone = client.post("/replay/undo/", "{}", content_type="application/json").json()
    assert undone["number"] == 3
    assert list(verdicts.all()) == ["inbox"] * 4 + ["gold"]


def test_without_alike_one_entry_is_decided_alone(client: Client, operator):
    rows = entries(operator.memberships.get().team, 7, 7)
    body = {"verdict": "accepted", "alike": False}
    answer = client.post(f"/replay/{rows[1].pk}/label/", json.dumps(body), content_type="application/json")
    assert answer.json()["number"] == 1
    assert ReplayEntry.objects.filter(verdict="accepted").count() == 1
