"""A success with unparsable or refused turns is never accepted as it is: it is flagged, last, and trimmed."""

import json

import pytest
from django.test import Client

from testing.factories import make_replay_entry, make_team, make_trajectory, make_user
from testing.page_text import page_text
from webapp.accounts.models import Role
from webapp.lib.request_values import BadValue
from webapp.replay.filters import EntryFilter
from webapp.replay.models import ReplayEntry
from webapp.replay.queries.queue import queue_after
from webapp.replay.queries.rules import Rules, admit
from webapp.replay.queries.sorting import Surroundings
from webapp.replay.services.bulk_labels import BulkLabel, label_many
from webapp.replay.services.inbox import offer_to_inbox
from webapp.replay.services.labels import NeedsTrim, label_entry, undo_latest

pytestmark = pytest.mark.django_db


def babbled(team, *bad: int, turns: int = 4, refused: bool = False) -> ReplayEntry:
    """An entry of the inbox whose turns at `bad` were unparsable, or refused."""
    trajectory = make_trajectory(team=team, turns=turns, reward=1.0, status="truncated")
    broken = {"action_error": "off screen"} if refused else {"parse_error": "no action", "action": None}
    trajectory.turns.filter(index__in=bad).update(**broken)
    entry = offer_to_inbox(trajectory=trajectory)
    assert entry is not None
    return entry


@pytest.fixture
def team():
    return make_team()


@pytest.fixture
def user(team, client: Client):
    person = make_user(Role.ANNOTATOR, team=team)
    client.force_login(person)
    return person


@pytest.mark.parametrize("refused", [False, True])
def test_it_is_accepted_without_those_turns_only(team, user, refused: bool):
    entry = babbled(team, 1, 3, refused=refused)
    assert entry.has_bad_turns
    with pytest.raises(NeedsTrim, match="up to turn 3"):
        label_entry(entry=entry, user=user, verdict="accepted")
    label_entry(entry=entry, user=user, verdict="gold", trim=True)
    entry.refresh_from_db()
    assert (entry.verdict, entry.edit, entry.has_bad_turns) == ("gold", {"last": 2, "context": [1]}, False)
    undo_latest(team=team, user=user)
    entry.refresh_from_db()
    assert (entry.verdict, entry.edit, entry.has_bad_turns) == ("inbox", {}, True)


def test_one_without_a_good_turn_can_only_be_rejected(team, user):
    entry = babbled(team, 0, 1, turns=2)
    with pytest.raises(BadValue, match="reject it"):
        label_entry(entry=entry, user=user, verdict="accepted", trim=True)
    label_entry(entry=entry, user=user, verdict="rejected")


def test_a_trim_by_hand_is_as_good(team, user):
    entry = babbled(team, 2, 3)
    label_entry(entry=entry, user=user, edit={"last": 1})
    label_entry(entry=entry, user=user, verdict="accepted")
    entry.refresh_from_db()
    assert (entry.verdict, entry.edit) == ("accepted", {"last": 1})


@pytest.mark.parametrize("sort", ["newest", "best"])
def test_the_queue_has_them_last_page_by_page(team, sort: str):
    clean = [make_replay_entry(team=team) for _ in range(2)]
    flawed = [babbled(team, 3) for _ in range(2)]
    chosen, order, before = EntryFilter(sort=sort), [], None
    while found := queue_after(team.pk, chosen, before, 1):
        order.append(before := found[0].pk)
    assert order == [clean[1].pk, clean[0].pk, flawed[1].pk, flawed[0].pk]


def test_label_all_holds_them_back_or_trims_them(team, user):
    clean, flawed, hopeless = make_replay_entry(team=team), babbled(team, 3), babbled(team, 0, turns=1)
    everything = ReplayEntry.objects.filter(team=team)
    assert label_many(entries=everything, user=user, verdict="accepted") == BulkLabel(1, 2)
    assert label_many(entries=everything, user=user, verdict="accepted", trim=True) == BulkLabel(1, 1)
    for entry in (clean, flawed, hopeless):
        entry.refresh_from_db()
    assert [entry.verdict for entry in (clean, flawed, hopeless)] == ["accepted", "accepted", "inbox"]
    assert (flawed.edit, flawed.has_bad_turns) == ({"last": 2}, False)
    assert label_many(entries=everything, user=user, verdict="rejected") == BulkLabel(3, 0)


def test_pages_offer_to_trim(team, user, client: Client):
    entry = babbled(team, 2, 3)
    make_replay_entry(team=team)
    page = page_text(client.get("/replay/"))
    assert ">flawed</span>" in page
    assert "1 of them has unparsable or refused turns" in page
    (shown,) = client.get(f"/replay/entries/?ids={entry.pk}").json()["entries"]
    assert shown["trimmedTo"] == 2
    address = f"/replay/{entry.pk}/label/"
    refused = client.post(address, json.dumps({"verdict": "accepted"}), content_type="application/json")
    assert refused.status_code == 409
    assert "up to turn 2" in refused.json()["error"]["message"]
    assert "end the entry at turn 2" in page_text(client.get(f"/replay/{entry.pk}/"))
    client.post(address, {"verdict": "accepted", "trim": "1"})
    entry.refresh_from_db()
    assert (entry.verdict, entry.edit) == ("accepted", {"last": 1})


def test_the_bulk_form_names_how_many_are_held_back(team, user, client: Client):
    babbled(team, 3)
    make_replay_entry(team=team)
    answer = client.post("/replay/bulk/", {"verdict": "accepted", "expected": "2"}, follow=True)
    assert "1 was held back: unparsable or refused turns" in page_text(answer)


def test_the_api_refuses_and_trims(team, user, client: Client):
    entry = babbled(team, 3)
    address = f"/api/v1/replay/{entry.pk}/label"
    refused = client.post(address, {"verdict": "accepted"}, content_type="application/json")
    assert refused.status_code == 409
    bulk = {"to": "accepted", "expected": 1}
    held = client.post("/api/v1/replay/bulk", bulk, content_type="application/json").json()
    assert held == {"changed": 0, "held_back": 1, "left_out": 0}
    taken = client.post(
        address, {"verdict": "accepted", "trim": True}, content_type="application/json"
    ).json()
    assert (taken["verdict"], taken["has_bad_turns"]) == ("accepted", False)


def test_rules_hold_back_what_was_accepted_before_it_was_flagged(team):
    entry = babbled(team, 3)
    ReplayEntry.objects.filter(pk=entry.pk).update(verdict="accepted")
    found = admit(team, Rules(), Surroundings(team.pk))
    assert (found.entering, dict(found.left_out)) == ([], {"unparsable or refused turns: trim it": 1})
