"""Trees and terminals travel with entries in ATIF archives."""

import json
from io import BytesIO
from zipfile import ZipFile

import pytest

from testing.factories import make_replay_entry, make_team, make_user
from testing.observed_texts import read_with, tree, widget
from testing.replay_imports import import_lines
from webapp.replay.formats.atif.archive import archive_pieces, documents
from webapp.trajectories.services.texts import read_text

pytestmark = pytest.mark.django_db

TREE = tree(widget("label", "line", (0, 0, 9, 9), "é"))
TERMINAL = "user@desk:~$ ls"


def test_an_archive_carries_them() -> None:
    entry, team = make_replay_entry(turns=2), make_team()
    read_with(entry.trajectory.turns.first(), accessibility=TREE, terminal=TERMINAL)
    with ZipFile(BytesIO(b"".join(archive_pieces([entry])))) as archive:
        (document,) = documents(archive)
        line = json.dumps(document.line())
    task_set = entry.trajectory.task.task_set
    (back,) = import_lines(lines=[line], team=team, task_set=task_set, user=make_user(team=team))
    first = back.trajectory.turns.order_by("index").first()
    assert (read_text(first.accessibility), read_text(first.terminal)) == (TREE, TERMINAL)
