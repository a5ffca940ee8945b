"""Statements that Django's compiler does not write, beside what it would have written."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db import IntegrityError, transaction

from testing.factories import make_trajectory
from webapp.lib.statements.single_rows import insert_row, update_each, update_row
from webapp.trajectories.models import Frame, Trajectory, TurnRecord

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 25, 12, 30, 1, 250_000, tzinfo=UTC)


def columns_of(row: TurnRecord) -> dict[str, object]:
    return {field.name: getattr(row, field.attname) for field in row._meta.fields if field.name != "id"}


def test_a_row_is_the_one_that_the_model_would_have_saved():
    by_hand, by_model = make_trajectory(turns=0), make_trajectory(turns=0)
    values = {"index": 0, "frame": "a" * 64, "observation_text": "100 % %s", "observed_at": NOW}
    values |= {"action": {"kind": "click", "x": 1}, "screen_changed": True, "terms": [{"name": "ä"}]}
    insert_row(TurnRecord, trajectory=by_hand.pk, **values)
    TurnRecord.objects.create(trajectory=by_model, **values)
    written, saved = TurnRecord.objects.get(trajectory=by_hand), TurnRecord.objects.get(trajectory=by_model)
    assert columns_of(written) | {"trajectory": 0} == columns_of(saved) | {"trajectory": 0}


def test_a_row_that_is_there_is_left_or_refused():
    team = make_trajectory(turns=0).team_id
    values = {"team": team, "sha256": "b" * 64, "height": 2}
    for width in (1, 5):
        insert_row(Frame, **values, width=width, ignore_conflicts=True)
    frame = Frame.objects.get(sha256="b" * 64)
    assert (frame.width, frame.num_bytes) == (1, None)
    assert abs((datetime.now(UTC) - frame.created_at).total_seconds()) < 60
    with pytest.raises(IntegrityError), transaction.atomic():
        insert_row(Frame, **values, width=1)


def test_columns_are_set_and_raised_and_one_is_returned():
    row, other = make_trajectory(turns=0), make_trajectory(turns=0)
    for _ in range(2):
        answer = update_row(
            Trajectory,
            {"id": row.pk},
            add={"num_prompt_tokens": 3, "num_parse_errors": 1},
            returning="group",
            last_frame="c" * 64,
        )
        assert answer == row.group_id
    row.refresh_from_db()
    other.refresh_from_db()
    assert (row.num_prompt_tokens, row.num_parse_errors, row.last_frame) == (6, 2, "c" * 64)
    assert (other.num_prompt_tokens, other.num_parse_errors) == (None, 0)


def test_a_row_that_is_not_there_is_named():
    with pytest.raises(Trajectory.DoesNotExist, match="'id': 12345"):
        update_row(Trajectory, {"id": 12345}, last_frame="")


def test_each_row_gets_its_own_value_and_others_keep_theirs():
    row, other = make_trajectory(turns=0), make_trajectory(turns=0)
    for index in range(3):
        for one in (row, other):
            insert_row(TurnRecord, trajectory=one.pk, index=index, observed_at=NOW)
    terms = {0: [{"name": "a", "value": 0.5}], 2: []}
    update_each(TurnRecord, {"trajectory": row.pk}, "terms", by="index", values=terms)
    assert list(row.turns.values_list("terms", flat=True)) == [terms[0], [], []]
    assert list(other.turns.values_list("terms", flat=True)) == [[], [], []]
