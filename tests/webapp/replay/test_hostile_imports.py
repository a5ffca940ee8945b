"""Lines that once broke the import, or a team's replay pages for good: each is refused by its field."""

import json
import re
from base64 import b64encode

import pytest
from django.test import Client

from testing.factories import make_replay_entry, make_team, make_user
from testing.page_text import page_text
from testing.replay_imports import check_lines, import_lines
from webapp.replay.formats.slime_export import export_record
from webapp.replay.models import ReplayEntry
from webapp.replay.services.labels import MAX_NOTE

pytestmark = pytest.mark.django_db

TERM = {"name": "task_score.v1", "value": 1.0, "weight": 1.0, "contribution": 1.0}


def changed(record, path, value):
    """`record` with the value at a dotted path replaced."""
    *parents, last = path.split(".")
    place = record
    for name in parents:
        place = place[int(name)] if isinstance(place, list) else place[name]
    place[int(last) if isinstance(place, list) else last] = value


CHANGES = {
    "a reward of 400 digits": ("reward", int("9" * 400), "not JSON|reward: larger"),
    "a reward that is no reward": ("reward", 1e7, "reward: 10000000.0 is above"),
    "NaN": ("metadata.deskhand.terms", [{**TERM, "value": float("nan")}], "terms.0..value: not a finite"),
    "terms that are numbers": ("metadata.deskhand.terms", [1], r"metadata.deskhand.terms\[0\]: "),
    "terms that are a text": ("metadata.deskhand.terms", "x", "metadata.deskhand.terms: not a list"),
    "a term without a weight": ("metadata.deskhand.terms", [{"name": "x"}], "terms.0..value: Field required"),
    "a huge version": ("metadata.policy_version", 10**30, "metadata.policy_version: larger than"),
    "a large version": ("metadata.policy_version", 2**40, "metadata.policy_version: not a version"),
    "a repeated turn": ("metadata.deskhand.turns.1.index", 0, r"turns\[1\].index: 0 must come after 0"),
    "a turn far away": ("metadata.deskhand.turns.1.index", 2**40, r"turns\[1\].index"),
    "a wide screen": ("metadata.deskhand.turns.0.observation.width", 2**40, r"turns\[0\].observation"),
    "a long dialect": ("metadata.deskhand.turns.0.dialect", "x" * 99, r"turns\[0\].dialect"),
    "half a pair": ("metadata.deskhand.note", "\ud800", "metadata.deskhand.note: holds half"),
    "a tag that is a number": ("metadata.deskhand.tags", 5, "metadata.deskhand: tags: not a list"),
    "an unknown verdict": ("metadata.deskhand.verdict", "nice", "metadata.deskhand: verdict"),
    "a long note": ("metadata.deskhand.note", "x" * (MAX_NOTE + 1), "metadata.deskhand: note: at most"),
    "a long limit": ("metadata.deskhand.max_turns", 10**18, "metadata.deskhand.max_turns"),
}


def problems_of(user, text, task_set):
    """What the check says of the file's only line."""
    team = user.memberships.get().team
    job = check_lines(lines=[text], team=team, task_set=task_set, user=user, keep_labels=True)
    assert (job.status, job.num_new, job.num_bad) == ("failed", 0, 1)
    ((number, problem),) = job.problems
    assert number == 1
    return problem


@pytest.mark.parametrize("name", CHANGES)
def test_a_hostile_line_is_refused_by_its_field(name):
    path, value, said = CHANGES[name]
    entry = make_replay_entry(turns=3)
    record = export_record(entry)
    changed(record, path, value)
    user = make_user("admin", team=make_team())
    problem = problems_of(user, json.dumps(record), entry.trajectory.task.task_set)
    assert re.search(said, problem), problem
    assert not ReplayEntry.objects.filter(team=user.memberships.get().team).exists()


@pytest.mark.parametrize("body", ["[" * 100_000, '{"a": 1e400}', "\x00", "²" * 10])
def test_a_line_that_is_no_plain_json_is_refused(body):
    entry = make_replay_entry(turns=1)
    user = make_user("admin", team=make_team())
    assert problems_of(user, body, entry.trajectory.task.task_set)


@pytest.mark.parametrize(
    "body", [b"GIF89a" + b"\xff" * 40, b"\x89PNG\r\n\x1a\n" + b"\x00" * 99, b"%!PS-Adobe"]
)
def test_a_picture_that_is_none_is_refused(body):
    entry = make_replay_entry(turns=1)
    record = export_record(entry)
    record["images"] = [b64encode(body).decode()]
    user = make_user("admin", team=make_team())
    assert "images[0]: not an image" in problems_of(user, json.dumps(record), entry.trajectory.task.task_set)


def test_what_is_imported_can_be_looked_at():
    entry = make_replay_entry(turns=3)
    record = export_record(entry)
    record["metadata"]["deskhand"]["terms"] = [TERM]
    user = make_user("admin", team=make_team())
    (new,) = import_lines(
        lines=[json.dumps(record)],
        team=user.memberships.get().team,
        task_set=entry.trajectory.task.task_set,
        user=user,
        keep_labels=True,
    )
    client = Client()
    client.force_login(user)
    task = entry.trajectory.task.instruction
    assert task in page_text(client.get(f"/replay/?entry={new.pk}"))
    assert f"/trajectories/{new.trajectory_id}/" in page_text(client.get(f"/replay/{new.pk}/"))
    assert TERM["name"] in page_text(client.get(f"/trajectories/{new.trajectory_id}/"))
    assert client.get("/replay/export/").status_code == 200
    assert export_record(new)["metadata"]["deskhand"]["terms"] == [{**TERM, "note": ""}]
