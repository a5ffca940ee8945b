"""The inbox over HTTP: one request labels and brings the next entry; conflicts and filters are plain."""

import json

import pytest
from asgiref.sync import async_to_sync

from testing.factories import (
    make_experiment,
    make_group,
    make_replay_entry,
    make_trajectory,
    make_user,
)
from testing.page_text import page_text
from webapp.replay.models import LabelEvent, ReplayEntry, ReplayUseRecord

pytestmark = pytest.mark.django_db


def post(web, path, **body):
    return web.post(path, json.dumps(body), content_type="application/json")


def shown(response):
    """Ids of the queue rows of a page, in order."""
    return [entry.pk for entry in response.context["queue"]]


def test_one_request_labels_and_brings_what_comes_next(web, team):
    entries = [make_replay_entry(team=team) for _ in range(6)]
    answer = post(
        web,
        f"/replay/{entries[5].pk}/label/",
        verdict="gold",
        expected_verdict="inbox",
        need=str(entries[1].pk),
    ).json()
    assert (answer["entry"]["verdict"], answer["entry"]["labelledBy"]) == ("gold", "anna")
    assert [entry["id"] for entry in answer["entries"]] == [entries[1].pk]
    assert len(answer["entries"][0]["turns"]) == 3


def test_labelling_and_the_next_entry_take_few_queries(web, team, django_assert_max_num_queries):
    entries = [make_replay_entry(team=team) for _ in range(4)]
    path = f"/replay/{entries[3].pk}/label/"
    with django_assert_max_num_queries(14):
        post(web, path, verdict="accepted", expected_verdict="inbox", need=str(entries[0].pk))


def test_a_conflict_answers_409_with_what_the_entry_is_now(web, team):
    entry = make_replay_entry(team=team, verdict="rejected", labelled_by=make_user(name="bert"))
    response = post(web, f"/replay/{entry.pk}/label/", verdict="gold", expected_verdict="inbox")
    assert response.status_code == 409
    assert "rejected by now, set by bert" in response.json()["error"]["message"]
    assert response.json()["entry"]["verdict"] == "rejected"


@pytest.mark.parametrize(
    "body", ["[]", "{", '{"verdict": "splendid"}', '{"tags": 5}', '{"note": 7}', '{"tags": [1]}']
)
def test_a_broken_label_is_refused_and_changes_nothing(web, team, body):
    entry = make_replay_entry(team=team)
    response = web.post(f"/replay/{entry.pk}/label/", body, content_type="application/json")
    assert response.status_code == 400
    assert not LabelEvent.objects.exists()


def test_undo_takes_back_the_newest_label_and_hands_the_entry_over(web, team):
    entry = make_replay_entry(team=team)
    post(web, f"/replay/{entry.pk}/label/", verdict="rejected")
    answer = post(web, "/replay/undo/", whole=True).json()
    assert [label["verdict"] for label in answer["labels"]] == ["inbox"]
    assert answer["entries"][0]["id"] == entry.pk
    assert f'data-entry="{entry.pk}"' in answer["row"]
    assert post(web, "/replay/undo/").status_code == 409


def test_the_inbox_is_narrowed_by_what_stands_in_the_url(web, team):
    experiment = make_experiment(team=team)
    inside = make_replay_entry(trajectory=make_trajectory(group=make_group(experiment=experiment)))
    gold = make_replay_entry(team=team, verdict="gold", tags=["clean"])
    other = make_replay_entry(team=team)
    ReplayEntry.objects.filter(pk=other.pk).update(family="typing")
    make_replay_entry()  # another team's
    assert shown(web.get("/replay/")) == [other.pk, inside.pk]
    assert shown(web.get(f"/replay/?experiment={experiment.pk}")) == [inside.pk]
    assert shown(web.get("/replay/?family=typing")) == [other.pk]
    assert shown(web.get("/replay/?verdict=gold&tag=clean")) == [gold.pk]
    assert shown(web.get("/replay/?verdict=all")) == [other.pk, gold.pk, inside.pk]
    assert shown(web.get("/replay/?verdict=nonsense&age=never&experiment=x")) == [other.pk, inside.pk]


def test_the_queue_goes_on_below_the_last_known_entry(web, team):
    entries = [make_replay_entry(team=team) for _ in range(3)]
    rows = web.get(f"/replay/entries/?before={entries[2].pk}").json()["rows"]
    assert rows.index(f'data-entry="{entries[1].pk}"') < rows.index(f'data-entry="{entries[0].pk}"')
    assert web.get(f"/replay/entries/?before={entries[0].pk}").json()["rows"] == ""


def test_a_bulk_label_needs_the_number_that_was_shown(web, team):
    for _ in range(3):
        make_replay_entry(team=team)
    web.post("/replay/bulk/", {"verdict": "rejected", "expected": "2"})
    assert not LabelEvent.objects.exists()
    web.post("/replay/bulk/", {"verdict": "rejected", "expected": "3"})
    assert ReplayEntry.objects.filter(verdict="rejected").count() == 3
    web.post("/replay/undo/")
    assert ReplayEntry.objects.filter(verdict="inbox").count() == 3


def test_a_bulk_label_keeps_the_filter(web, team):
    family = make_replay_entry(team=team).family
    response = web.post(f"/replay/bulk/?family={family}", {"verdict": "rejected", "expected": "1"})
    assert response.url == f"/replay/?family={family}"


def test_a_bulk_label_of_many_asks_the_database_a_few_times(web, team, django_assert_max_num_queries):
    group = make_group(team=team)
    rows = [make_trajectory(group=group, turns=0) for _ in range(30)]
    ReplayEntry.objects.bulk_create([ReplayEntry(team=team, trajectory=row) for row in rows])
    with django_assert_max_num_queries(16):
        web.post("/replay/bulk/", {"verdict": "gold", "expected": "30"})
    assert ReplayEntry.objects.filter(verdict="gold", labelled_by__isnull=False).count() == 30


def test_an_entrys_page_tells_who_labelled_it_and_where_it_was_used(web, team):
    experiment = make_experiment(team=team, name="with replay")
    group = make_group(experiment=experiment)
    failed = make_trajectory(group=group, reward=0.0)
    entry = make_replay_entry(team=team)
    post(web, f"/replay/{entry.pk}/label/", verdict="gold", note="neat")
    ReplayUseRecord.objects.create(
        entry=entry,
        experiment=experiment,
        group=group,
        replaced=failed,
        step=12,
        policy_age=4,
        advantage=1.25,
        importance_ratio=0.875,
    )
    page = page_text(web.get(f"/replay/{entry.pk}/"))
    for part in ("anna", "neat", "with replay", ">12<", "4 versions", "Importance ratio 0.875", "+1.25"):
        assert part in page
    viewer = page_text(web.get(f"/trajectories/{entry.trajectory_id}/?group={group.pk}"))
    for part in ("used in step 12", "policy 4 versions old", "by anna", f"Group {group.pk}"):
        assert part in viewer


def test_checks_name_the_older_entry_that_it_is_near_identical_to(web, team):
    group = make_group(team=team)
    older, newer, waiting = (make_replay_entry(trajectory=make_trajectory(group=group)) for _ in range(3))
    ReplayEntry.objects.filter(pk__in=[older.pk, newer.pk]).update(cluster=older.pk)
    entries = web.get(f"/replay/entries/?ids={newer.pk},{older.pk},{waiting.pk}").json()["entries"]
    text = f"Near-identical to entry {older.pk}"
    assert {"tone": "warning", "text": text, "cluster": older.pk} in entries[0]["checks"]
    assert [check["text"] for check in entries[1]["checks"]] == ["No older entry is near-identical"]
    assert entries[2]["checks"] == [], "it was not compared yet"
    assert f'<a href="/replay/list/?cluster={older.pk}">' in page_text(web.get(f"/replay/{newer.pk}/"))


def test_the_file_of_the_export_holds_accepted_and_gold_entries(web, team):
    for verdict in ("inbox", "accepted", "gold", "rejected"):
        make_replay_entry(team=team, verdict=verdict)
    response = web.get("/replay/export/?images=sha256")
    lines = async_to_sync(_joined)(response.streaming_content).decode().splitlines()
    assert [json.loads(line)["metadata"]["deskhand"]["verdict"] for line in lines] == ["accepted", "gold"]


async def _joined(parts):
    return b"".join([part async for part in parts])


def test_coverage_counts_families_by_verdict(web, team):
    make_replay_entry(team=team, verdict="gold")
    make_replay_entry(team=team, verdict="gold")
    row = web.get("/replay/stats/").context["coverage"][0]
    assert (row["family"], row["total"]) == ("menu", 2)
    assert {cell["verdict"]: cell["number"] for cell in row["cells"]} == {
        "inbox": 0,
        "accepted": 0,
        "gold": 2,
        "rejected": 0,
    }


def test_an_empty_buffer_is_no_matter_of_filters(web):
    assert "The buffer is empty" in page_text(web.get("/replay/list/"))
    assert "No entry fits these filters" in page_text(web.get("/replay/list/?family=menu"))


def test_a_chosen_experiment_is_named_whatever_its_age(web, team, monkeypatch):
    monkeypatch.setattr("webapp.replay.queries.entries.MAX_CHOICES", 1)
    old, new = (make_experiment(team=team, name=name) for name in ("The old run", "The new run"))
    page = page_text(web.get(f"/replay/list/?experiment={old.pk}"))
    assert f'<option value="{old.pk}" selected>The old run</option>' in page
    assert f'<option value="{new.pk}">The new run</option>' in page
