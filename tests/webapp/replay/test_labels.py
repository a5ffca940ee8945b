"""Labels are events: they change the entry, can be taken back one by one, and never overwrite silently."""

import contextlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import User
from django.db import connection

from testing.factories import make_replay_entry, make_team, make_user
from webapp.replay.models import LabelEvent, ReplayEntry, Verdict
from webapp.replay.services.bulk_labels import BulkLabel, label_many
from webapp.replay.services.labels import (
    LabelConflict,
    NothingToUndo,
    label_entry,
    undo_last,
    undo_latest,
)

pytestmark = pytest.mark.django_db


def test_a_label_changes_the_entry_and_leaves_an_event_with_before_and_after():
    entry = make_replay_entry()
    user = make_user("annotator", team=entry.team)
    event = label_entry(entry=entry, user=user, verdict="accepted", tags=["Clean", "clean "], note=" ok ")
    entry.refresh_from_db()
    assert (entry.verdict, entry.tags, entry.note, entry.labelled_by) == ("accepted", ["clean"], "ok", user)
    assert event.before == {"verdict": "inbox", "tags": [], "note": "", "edit": {}}
    assert event.after == {"verdict": "accepted", "tags": ["clean"], "note": "ok", "edit": {}}


def test_a_label_that_changes_nothing_leaves_no_event():
    entry = make_replay_entry(verdict=Verdict.GOLD)
    assert label_entry(entry=entry, user=make_user(), verdict="gold", expected_verdict="gold") is None
    assert not LabelEvent.objects.exists()


def test_undo_goes_back_label_by_label_to_the_inbox_and_then_says_so():
    entry = make_replay_entry()
    user = make_user("annotator", team=entry.team)
    for verdict in ("accepted", "rejected", "gold"):
        label_entry(entry=entry, user=user, verdict=verdict)
    seen = []
    for _ in range(3):
        undo_last(entry=entry, user=user)
        entry.refresh_from_db()
        seen.append(entry.verdict)
    assert seen == ["rejected", "accepted", "inbox"]
    assert entry.labelled_by is None
    with pytest.raises(NothingToUndo):
        undo_last(entry=entry, user=user)
    assert LabelEvent.objects.filter(entry=entry).count() == 6  # nothing is ever deleted


def test_a_label_after_an_undo_can_be_undone_again():
    entry = make_replay_entry()
    user = make_user("annotator", team=entry.team)
    label_entry(entry=entry, user=user, verdict="accepted")
    undo_last(entry=entry, user=user)
    label_entry(entry=entry, user=user, verdict="rejected")
    undo_last(entry=entry, user=user)
    entry.refresh_from_db()
    assert entry.verdict == "inbox"


def test_after_an_undo_the_entry_names_the_labeller_whose_verdict_stands():
    entry = make_replay_entry()
    first, second = (make_user("annotator", team=entry.team) for _ in range(2))
    label_entry(entry=entry, user=first, verdict="accepted")
    label_entry(entry=entry, user=second, verdict="gold")
    undo_last(entry=entry, user=second)
    entry.refresh_from_db()
    assert (entry.verdict, entry.labelled_by) == ("accepted", first)


def test_of_two_people_who_saw_the_inbox_the_second_is_told_who_was_first():
    entry = make_replay_entry()
    anna, bert = (make_user("annotator", team=entry.team, name=name) for name in ("anna", "bert"))
    stale = ReplayEntry.objects.get(pk=entry.pk)
    label_entry(entry=entry, user=anna, verdict="accepted", expected_verdict="inbox")
    with pytest.raises(LabelConflict, match="accepted by now, set by anna") as conflict:
        label_entry(entry=stale, user=bert, verdict="rejected", expected_verdict="inbox")
    assert conflict.value.entry.verdict == "accepted"
    entry.refresh_from_db()
    assert entry.verdict == "accepted"


def test_nobody_takes_back_the_label_of_somebody_else():
    entry = make_replay_entry()
    anna, bert = (make_user("annotator", team=entry.team) for _ in range(2))
    label_entry(entry=entry, user=anna, verdict="accepted")
    with pytest.raises(LabelConflict, match="not yours"):
        undo_last(entry=entry, user=bert)
    label_entry(entry=entry, user=bert, verdict="gold")
    with pytest.raises(LabelConflict, match="after you"):
        undo_latest(team=entry.team, user=anna)


def test_the_latest_undo_finds_the_users_newest_label_in_the_team():
    team = make_team()
    user = make_user("annotator", team=team)
    first, second = make_replay_entry(team=team), make_replay_entry(team=team)
    elsewhere = make_replay_entry()
    label_entry(entry=first, user=user, verdict="accepted")
    label_entry(entry=second, user=user, verdict="rejected")
    label_entry(entry=elsewhere, user=user, verdict="gold")
    assert [event.entry_id for event in undo_latest(team=team, user=user)] == [second.pk]
    assert [event.entry_id for event in undo_latest(team=team, user=user)] == [first.pk]
    with pytest.raises(NothingToUndo):
        undo_latest(team=team, user=user)


def test_a_bulk_change_is_undone_as_a_whole_but_spares_what_changed_since():
    team = make_team()
    user, other = make_user("annotator", team=team), make_user("annotator", team=team)
    entries = [make_replay_entry(team=team) for _ in range(4)]
    label_entry(entry=entries[0], user=user, verdict="rejected")
    assert (
        label_many(entries=ReplayEntry.objects.filter(team=team), user=user, verdict="rejected").changed == 3
    )
    label_entry(entry=entries[1], user=other, verdict="gold")
    assert len(undo_latest(team=team, user=user)) == 2
    verdicts = [ReplayEntry.objects.get(pk=entry.pk).verdict for entry in entries]
    assert verdicts == ["rejected", "gold", "inbox", "inbox"]


def test_a_bulk_change_with_a_tag_keeps_what_each_entry_had():
    team = make_team()
    user = make_user("annotator", team=team)
    entries = [make_replay_entry(team=team) for _ in range(3)]
    for number, entry in enumerate(entries[:2]):
        label_entry(entry=entry, user=user, verdict="accepted", tags=[f"t{number}"], note=f"note {number}")
    done = label_many(entries=ReplayEntry.objects.filter(team=team), user=user, verdict="gold", add_tag="new")
    assert done == BulkLabel(changed=3, held_back=0)
    found = ReplayEntry.objects.filter(team=team).order_by("pk").values_list("verdict", "tags", "note")
    assert list(found) == [
        ("gold", ["t0", "new"], "note 0"),
        ("gold", ["t1", "new"], "note 1"),
        ("gold", ["new"], ""),
    ]


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite locks its whole database")
@pytest.mark.django_db(transaction=True)
def test_bulk_labels_and_their_undo_by_several_people_never_wait_for_each_other():
    team = make_team()
    people = [make_user("annotator", team=team) for _ in range(5)]
    for _ in range(40):
        make_replay_entry(team=team)
    entries = ReplayEntry.objects.filter(team=team)

    def work(user: User) -> int:
        try:
            for number in range(15):
                label_many(entries=entries, user=user, verdict=("accepted", "rejected", "gold")[number % 3])
                with contextlib.suppress(NothingToUndo):
                    undo_latest(team=team, user=user)
            return LabelEvent.objects.filter(by=user).count()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(people)) as threads:
        assert all(threads.map(work, people))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"verdict": "splendid"}, "verdict: 'splendid'"),
        ({"tags": ["x" * 41]}, "tags: "),
        ({"tags": [f"t{i}" for i in range(13)]}, "tags: at most 12"),
        ({"note": "n" * 4001}, "note: at most 4000"),
    ],
)
def test_a_value_that_cannot_be_stored_is_refused_by_the_name_of_its_field(change, message):
    entry = make_replay_entry()
    with pytest.raises(ValueError, match=message):
        label_entry(entry=entry, user=make_user(), **change)
    assert not LabelEvent.objects.exists()
