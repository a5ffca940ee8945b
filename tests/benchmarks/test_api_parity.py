"""No hole between the pages' buttons, the API's operations and the client's methods."""

import pytest

from benchmarks.api_parity import ROUTES, holes, table
from scripts.write_client import written

pytestmark = pytest.mark.django_db


def test_every_button_has_an_operation_and_every_operation_a_method():
    assert holes() == []


def test_a_hole_is_found(monkeypatch):
    monkeypatch.delitem(ROUTES, "experiment-move")
    monkeypatch.setitem(ROUTES, "experiment-pause", ("no_such_operation",))
    assert holes() == [
        "experiment-move: a route without a row in ROUTES",
        "no_such_operation: no operation of the API",
        "move_experiment: an operation without a row",
        "pause_experiment: an operation without a row",
    ]
    assert "no_such_operation" in table()


def test_the_written_client_is_that_of_the_schema():
    stale = [file.name for file, text in written().items() if file.read_text() != text]
    assert stale == [], "run .venv/bin/python -m scripts.write_client"
