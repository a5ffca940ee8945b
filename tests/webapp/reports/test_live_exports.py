"""What a page shows, as CSV and LaTeX; a body that is neither chart nor table is refused by its field."""

import json

import pytest
from django.test import Client

from testing.factories import make_team, make_user

pytestmark = pytest.mark.django_db
TABLE = {"title": "Tasks & more", "head": ["Task", "Solved"], "rows": [["menu-1", "50 %"], ["=A1", "✓"]]}
CHART = {
    "title": "Loss",
    "unit": "nats",
    "kind": "log",
    "lines": [{"name": "a_b", "x": [1, 2], "y": [0.5, None]}],
}


@pytest.fixture
def web(client: Client) -> Client:
    client.force_login(make_user("viewer", team=make_team()))
    return client


def send(web: Client, body: object, kind: str = "csv"):
    return web.post(f"/exports/{kind}/", json.dumps(body), content_type="application/json")


def test_a_table_becomes_a_file(web: Client) -> None:
    answer = send(web, TABLE)
    assert answer.content.decode() == "Task,Solved\r\nmenu-1,50 %\r\n'=A1,✓\r\n"
    assert answer["Content-Disposition"] == 'attachment; filename="tasks-more.csv"'
    tex = send(web, TABLE, "tex").content.decode()
    assert r"\caption{Tasks \& more}" in tex
    assert r"menu-1 & 50 \% \\" in tex


def test_a_chart_becomes_a_file(web: Client) -> None:
    assert send(web, CHART).content.decode() == "series,step,value\r\na_b,1,0.5\r\na_b,2,\r\n"
    tex = send(web, CHART, "tex").content.decode()
    assert r"ymode=log, ylabel={nats}" in tex
    assert r"\addplot coordinates {(1,0.5)};" in tex


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "title"),
        ({**TABLE, "rows": [["one"]]}, "every row must have 2 cells"),
        ({**TABLE, "head": []}, "head"),
        ({**TABLE, "more": 1}, "more"),
        ({**CHART, "lines": [{"name": "x", "x": [1], "y": []}]}, "lines.0"),
        ({**CHART, "lines": "x"}, "lines"),
    ],
)
def test_another_body_is_refused_by_its_field(web: Client, body: dict, field: str) -> None:
    answer = send(web, body)
    assert answer.status_code == 400
    assert field in answer.content.decode()


def test_an_unknown_format_is_not_there(web: Client) -> None:
    assert send(web, TABLE, "exe").status_code == 404
