"""What leaves the buffer as a file: in order, each entry with the label that it had when it was chosen."""

from dataclasses import replace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from testing.factories import make_replay_entry, make_team, make_user
from webapp.replay.exports import ENTRIES_AT_ONCE, chosen_entries, chosen_for_export
from webapp.replay.filters import EntryFilter
from webapp.replay.models import ReplayEntry
from webapp.replay.services.labels import label_entry

pytestmark = pytest.mark.django_db


def statements_for(number: int) -> int:
    team = make_team()
    for _ in range(number):
        make_replay_entry(team=team, turns=2)
    export = chosen_for_export(team.pk, EntryFilter(), only_usable=False)
    with CaptureQueriesContext(
        connection,
    ) as seen:
        found = [(entry.pk, len(entry.trajectory.turns.all())) for entry in chosen_entries(export)]
    assert found == [(pk, 2) for pk in sorted(export.labels)]
    return len(seen)


def test_entries_are_read_together():
    assert statements_for(2) == statements_for(ENTRIES_AT_ONCE)
    assert statements_for(ENTRIES_AT_ONCE + 1) <= 2 * statements_for(1)


def test_they_come_in_the_order_of_their_labels():
    team = make_team()
    for _ in range(3):
        make_replay_entry(team=team)
    export = chosen_for_export(team.pk, EntryFilter(), only_usable=False)
    backwards = replace(export, labels=dict(reversed(export.labels.items())))
    assert [entry.pk for entry in chosen_entries(backwards)] == list(backwards.labels)


def test_each_has_the_label_that_it_had_at_the_beginning():
    team = make_team()
    first, later = make_user(team=team), make_user(team=team)
    kept, changed, gone = (make_replay_entry(team=team) for _ in range(3))
    for entry in (kept, changed, gone):
        label_entry(entry=entry, user=first, verdict="accepted", note="good")
    export = chosen_for_export(team.pk, EntryFilter(), only_usable=True)
    label_entry(entry=changed, user=later, verdict="rejected", note="bad")
    ReplayEntry.objects.filter(pk=gone.pk).delete()
    labels = [(one.pk, one.verdict, one.note, one.labelled_by) for one in chosen_entries(export)]
    assert labels == [(pk, "accepted", "good", first) for pk in (kept.pk, changed.pk)]
    changed.refresh_from_db()
    assert (changed.verdict, changed.labelled_by) == ("rejected", later), "nothing was written"
