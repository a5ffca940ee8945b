"""Text that others report fits every database, and SQLite refuses in tests what PostgreSQL refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.apps import apps
from django.db import DatabaseError, connection, models, transaction

from testing.factories import make_experiment
from webapp.accounts.models import Team
from webapp.experiments.models import Experiment, Incident
from webapp.lib.columns.stored_fields import (
    ReportedCharField,
    ReportedJSONField,
    ReportedTextField,
    stored_value,
)
from webapp.lib.statements.single_rows import insert_row, update_row
from webapp.live.models import Event

pytestmark = pytest.mark.django_db
DIRTY, CLEAN = "a\x00b\ud83dc", "a\N{SYMBOL FOR NULL}b\N{REPLACEMENT CHARACTER}c"
BACKSLASHES = "\\u0000 \\ud83d \\\\u0000"
"""Words about escapes, which are none."""


def refuses(write: Any) -> bool:
    """Whether the database raises; the test's transaction goes on."""
    try:
        with transaction.atomic():
            write()
    except (DatabaseError, ValueError):  # psycopg reports NUL as ValueError in some of its versions
        return True
    return False


def raw(statement: str, *values: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


# --- what others report --------------------------------------------------------------------------------


def test_each_way_to_write_cleans_a_text():
    experiment = make_experiment()
    one = Incident.objects.create(experiment=experiment, kind="k", message=DIRTY)
    (two,) = Incident.objects.bulk_create([Incident(experiment=experiment, kind="k", message=DIRTY)])
    insert_row(Incident, experiment=experiment.pk, kind="k", message=DIRTY)
    assert list(Incident.objects.values_list("message", flat=True)) == [CLEAN] * 3
    Incident.objects.filter(pk=one.pk).update(message=f"2{DIRTY}")
    update_row(Incident, {"id": two.pk}, message=f"3{DIRTY}")
    assert [Incident.objects.get(pk=row.pk).message for row in (one, two)] == [f"2{CLEAN}", f"3{CLEAN}"]
    one.message = f"4{DIRTY}"
    Incident.objects.bulk_update([one], ["message"])
    one.refresh_from_db()
    assert one.message == f"4{CLEAN}"


def test_json_is_cleaned_at_any_depth_and_words_about_escapes_stay():
    experiment = make_experiment()
    experiment.tags = [DIRTY, {DIRTY: [DIRTY, 1, None]}, BACKSLASHES, "\N{GRINNING FACE}"]
    experiment.save()
    experiment.refresh_from_db()
    assert experiment.tags == [CLEAN, {CLEAN: [CLEAN, 1, None]}, BACKSLASHES, "\N{GRINNING FACE}"]


def test_a_text_longer_than_its_column_is_cut_and_shows_it():
    experiment = make_experiment(name="n" * 500)
    experiment.refresh_from_db()
    assert experiment.name == "n" * 119 + "…"
    assert stored_value(Experiment, "name", "n" * 500) == experiment.name
    assert stored_value(Experiment, "name", "n" * 120) == "n" * 120


EXACT = {
    "accounts.ApiToken": "digest hint name password_mark",
    "accounts.AuditEntry": "kind",
    "accounts.OidcIdentity": "issuer subject",
    "accounts.SavedView": "name query",
    "accounts.SentRequest": "body digest headers route",
    "accounts.Team": "name",
    "attacks.Exploit": "digest",
    "experiments.AlarmRecord": "name severity",
    "experiments.Attempt": "policy_token policy_url worker_name",
    "experiments.CheckpointExport": "copy_sha256 dtype host path worker_name",
    "experiments.CheckpointRecord": "copy_sha256 path",
    "experiments.Evaluation": "split",
    "experiments.Experiment": "placed_worker stage",
    "experiments.GangMember": "address worker_name",
    "experiments.Incident": "kind",
    "experiments.SavedRewardPreset": "name note",
    "experiments.Stage": "name",
    "experiments.Sweep": "name",
    "experiments.TaskRecord": "family split task_id",
    "experiments.TaskSet": "name",
    "experiments.TeamPrices": "currency",
    "fleet.BootFailure": "screenshot",
    "fleet.Desktop": "host name",
    "fleet.Host": "mirrored_by name",
    "fleet.JoinToken": "digest made_by_name",
    "fleet.JoinedHost": "digest invited_by_name stream",
    "fleet.Operation": "asked_by_name host target",
    "fleet.Worker": "address host name queue",
    "live.Event": "stream type",
    "live.Stream": "name",
    "notifications.Delivery": "key nonce",
    "notifications.NotificationRule": "secret site_url target",
    "replay.AdmissionPolicy": "name note",
    "replay.BufferSnapshot": "name",
    "replay.LabelEvent": "batch",
    "replay.ReplayEntry": "family screens signature",
    "replay.ReplayImport": "path",
    "replay.ReplaySkipRecord": "reason",
    "replay.ReviewRound": "name",
    "reports.Report": "title",
    "reports.ReportLink": "nonce",
    "reports.ReportVersion": "title",
    "scanners.Scan": "slice",
    "scanners.Scanner": "name note",
    "screens.Control": "claim connection",
    "trajectories.Frame": "sha256",
    "trajectories.Group": "request_key",
    "trajectories.Snapshot": "host name",
    "trajectories.Trajectory": "family final_frame host last_frame thumbnail",
    "trajectories.TurnRecord": "accessibility frame plain terminal",
}
"""Columns whose value is a name to be found by, or what a form has checked: cut, it would be another one."""


def text_fields() -> list[tuple[str, models.Field]]:
    ours = [model for model in apps.get_models() if model.__module__.startswith("webapp.")]
    found = [(model._meta.label, field) for model in ours for field in model._meta.local_concrete_fields]
    kinds = (models.CharField, models.TextField, models.JSONField)
    return [(label, field) for label, field in found if isinstance(field, kinds)]


def test_no_text_of_a_model_is_stored_as_it_comes():
    """A new column is one that cleans and cuts, or stands in `EXACT` since something else checks it."""
    reported = (ReportedCharField, ReportedTextField, ReportedJSONField)
    plain = [
        f"{label}.{field.name}"
        for label, field in text_fields()
        if not isinstance(field, reported) and not field.choices
    ]
    exact = [f"{label}.{name}" for label, names in EXACT.items() for name in names.split()]
    assert sorted(plain) == sorted(exact)


# --- what SQLite refuses in tests ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x" * 81, "a\x00b"], ids=["long", "NUL"])
def test_a_text_that_does_not_fit_is_refused_in_each_kind_of_statement(name: str):
    team = Team.objects.create(name="t")
    assert refuses(lambda: Team.objects.create(name=name))
    assert refuses(lambda: Team.objects.bulk_create([Team(name=name)]))
    assert refuses(lambda: Team.objects.filter(pk=team.pk).update(name=name))
    assert refuses(lambda: raw("UPDATE accounts_team SET name = %s", name))
    assert refuses(lambda: raw("INSERT INTO accounts_team (name) VALUES (%s)", name))
    assert not refuses(lambda: Team.objects.filter(pk=team.pk).update(name="x" * 80))


def test_a_long_text_has_no_limit_but_holds_no_nul():
    Incident.objects.create(experiment=make_experiment(), kind="k", message="")
    assert refuses(lambda: raw("UPDATE experiments_incident SET message = %s", "a\x00b"))
    assert not refuses(lambda: raw("UPDATE experiments_incident SET message = %s", "x" * 100_000))


BROKEN = [
    "\x00", "a\x00", "\\\x00", "\ud83d", "\ude00", "a\ud83d", "\ud83da", "\ud83d\ud83d\ude00", "\ude00\ud83d",
    "\ud83d\\ude00", "\ud83d\n", "\ude00" * 2, "ab\ude00", "abc\ude00", "abcd\ude00", "\ud83d\u0100",
    "\u0100\ude00", "\\ud83d\ude00", "\ud83d\ude00\ude00",
]  # fmt: skip
SOUND = ["", BACKSLASHES, "\\", "😀", "a😀😀b", "\\😀", "\u00e9\u0100😀", "ud83d", "\\\\ud83d", "\\ude00"]


@pytest.mark.parametrize("text", BROKEN, ids=ascii)
def test_json_that_postgresql_cannot_hold_is_refused(text: str):
    Event.objects.create(stream="s", seq=1, type="t")
    for value in (text, [f"x{text}y"], {text: 1}, {"k": {"l": [text]}}):
        assert refuses(lambda: raw("UPDATE live_event SET payload = %s", json.dumps(value))), value  # noqa: B023


@pytest.mark.parametrize("text", SOUND, ids=ascii)
def test_other_json_is_not(text: str):
    Event.objects.create(stream="s", seq=1, type="t")
    for value in (text, [f"x{text}y"], {text: 1}, [text, text]):
        raw("UPDATE live_event SET payload = %s", json.dumps(value))
        assert Event.objects.get().payload == value


def test_a_number_beyond_its_column_is_refused():
    experiment = make_experiment()

    def store(**values: int) -> None:
        Experiment.objects.filter(pk=experiment.pk).update(**values)

    for column in ("step", "priority"):
        assert refuses(lambda: store(**{column: 2**31})), column  # noqa: B023
        assert not refuses(lambda: store(**{column: 2**31 - 1})), column  # noqa: B023
