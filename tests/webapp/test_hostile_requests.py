"""Requests that once were answered 500: each gets a 4xx that names the field."""

import json
from base64 import urlsafe_b64encode

import pytest
from django.db import OperationalError, connection
from django.test import Client, RequestFactory

from testing.factories import PASSWORD, make_experiment, make_replay_entry, make_team, make_user
from webapp.experiments.models import Experiment
from webapp.lib import error_pages

pytestmark = pytest.mark.django_db

LONG = "9" * 5000
FORM = "application/x-www-form-urlencoded"


@pytest.fixture
def things(db):
    team = make_team()
    user = make_user("admin", team=team)
    experiment = make_experiment(team=team, owner=user, status="queued")
    checkpoint = experiment.checkpoints.create(step=1, policy_version=1, path="/nowhere/checkpoint")
    entry = make_replay_entry(team=team, turns=2)
    return {
        "user": user,
        "experiment": experiment.pk,
        "checkpoint": checkpoint.pk,
        "entry": entry.pk,
        "trajectory": entry.trajectory_id,
        "group": entry.trajectory.group_id,
    }


@pytest.fixture
def client(things):
    client = Client(raise_request_exception=False)
    client.force_login(things["user"])
    return client


def cursor(*values: object) -> str:
    return urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


PAGES = {
    "/trajectories/?sort=reward&after=" + cursor(float("inf"), 1): "after",
    "/trajectories/?after=" + cursor(1, float("inf")): "after",
    "/trajectories/?before=" + cursor(1, 10**30): "before",
    "/trajectories/?after=" + "A" * 5000: "after",
    "/api/v1/trajectories?after=" + cursor(float("nan"), float("nan")): "after",
    "/trajectories/{trajectory}/?group=²": "group",
    f"/trajectories/{{trajectory}}/turns/?indexes={LONG}": "indexes",
    "/groups/{group}/lane/?watched=²": "watched",
    "/replay/?entry=²": "entry",
    f"/replay/entries/?ids={LONG}": "ids",
    "/replay/entries/?before=²": "before",
    "/experiments/launch/?clone=²": "clone",
    f"/experiments/launch/?clone={{experiment}}&checkpoint={LONG}": "checkpoint",
    "/experiments/{experiment}/metrics/?from_step=²": "from_step",
    f"/experiments/compare/?id={LONG}": "id",
    "/experiments/{experiment}/parts/groups/?tab=groups&before=²": "before",
    "/replay/?family=%00": "family",
    "/fleet/desktops/a%00b/": "path",
}
DROPPED = [
    f"/experiments/?page={LONG}",
    f"/trajectories/?experiment={LONG}",
    "/replay/?experiment=²",
]
SHOWN = {
    "/experiments/": 'href="/experiments/{experiment}/"',
    "/trajectories/": 'href="/trajectories/{trajectory}/',
    "/replay/": '"id": {entry},',
}
"""What a list holds although its filter is broken."""


@pytest.mark.parametrize("path", PAGES)
def test_a_broken_query_is_named(client, things, path):
    response = client.get(path.format(**things))
    assert response.status_code == 400, response.content[:300]
    assert f"{PAGES[path]}: " in response.content.decode()


@pytest.mark.parametrize("path", DROPPED)
def test_a_broken_filter_is_dropped(client, things, path):
    page = client.get(path)
    assert page.status_code == 200
    assert SHOWN[path.split("?")[0]].format(**things) in page.content.decode()


@pytest.mark.parametrize("text", [LONG, "²"])
def test_a_search_for_what_is_no_number_is_a_search_for_a_name(client, things, text):
    link = f'href="/experiments/{things["experiment"]}/"'
    page = client.get("/experiments/", {"q": text})
    assert page.status_code == 200
    assert link not in page.content.decode()
    Experiment.objects.filter(pk=things["experiment"]).update(note=f"as {text[:90]} said")
    assert link in client.get("/experiments/", {"q": text[:90]}).content.decode()


POSTS = {
    "/experiments/{experiment}/priority/": ("priority=²", 400, "priority: "),
    f"/experiments/{{experiment}}/move/?{LONG}": (f"before={LONG}", 400, "before: "),
    "/experiments/cancel/": ("id=²", 400, "id: "),
    "/trajectories/{trajectory}/branch/": ("turn=²&size=1", 400, "turn: "),
    "/experiments/launch/": (f"experiment_name=x&priority={LONG}", 422, "is not a whole number from -100"),
    "/experiments/launch/preflight/": ("experiment_name=x&model.path=~nosuchuser/x", 200, "another user"),
    "/experiments/launch/scale/": ("scale_size=2B&scale_gpus=²", 400, "scale_gpus: "),
    "/demonstrate/": ("task=²", 400, "task: "),
}


@pytest.mark.parametrize("path", POSTS)
def test_a_broken_form_is_named(client, things, path):
    body, status, said = POSTS[path]
    response = client.post(path.format(**things), body, content_type=FORM)
    assert response.status_code == status, response.content[:300]
    assert said in response.content.decode()


@pytest.mark.parametrize("typed", ["nan", "inf", "1e999", "²", LONG])
def test_a_number_of_tasks_is_whole(client, things, typed):
    path = "/experiments/{experiment}/checkpoints/{checkpoint}/evaluate/".format(**things)
    response = client.post(path, {"num_tasks": typed, "sampling": "greedy"}, follow=True)
    assert response.status_code == 200
    assert "num_tasks: " in response.content.decode()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("[" * 100_000, "nested deeper"),
        ('{"need": "²"}', "need: "),
        (f'{{"before": "{LONG}"}}', "before: "),
        ('{"tags": 5}', "tags: "),
        ('{"tags": [[1]]}', "tags: "),
        ('{"note": 5}', "note: "),
        ('{"note": "\\u0000"}', "body.note: "),
        ('{"verdict": ["gold"]}', "verdict: "),
        ('{"verdict": {"a": NaN}}', "body.verdict.a: "),
    ],
)
def test_a_broken_label_is_named(client, things, body, said):
    path = f"/replay/{things['entry']}/label/"
    response = client.post(path, body, content_type="application/json", headers={"Sec-Fetch-Dest": "empty"})
    assert response.status_code == 400, response.content[:300]
    assert said in response.content.decode()


API = {"/api/v1/experiments": {"name": "x"}, "/api/v1/replay/{entry}/label": {"verdict": "gold"}}


@pytest.mark.parametrize("path", API)
@pytest.mark.parametrize(
    ("body", "content_type", "status", "said"),
    [
        ("[" * 100_000, "application/json", 400, "body: nested deeper"),
        ("[1]", "application/json", 400, "not a JSON object"),
        ('{"name": "\\ud800", "note": "\\ud800"}', "application/json", 400, "surrogate"),
        ("name=x", FORM, 415, "application/json"),
        ("--b\r\n\r\nx\r\n--b--\r\n", "multipart/form-data; boundary=b", 415, "application/json"),
        ('{"name": "x"}', "application/json; charset=utf-16", 415, "UTF-8"),
        ("x" * 3_000_000, "application/json", 413, "body: "),
    ],
)
def test_the_api_reads_json_alone(client, things, path, body, content_type, status, said):
    response = client.post(path.format(**things), body, content_type=content_type)
    assert response.status_code == status, response.content[:300]
    assert said in response.json()["error"]["message"]


CONFIGS = {
    "deep": ("model: " + "[" * 20_000, "nested deeper than"),
    "long number": (f"algorithm: {{group_size: {LONG}}}", "more than 40 characters"),
    "huge number": (f"algorithm: {{num_steps: {'9' * 30}}}", "far too large"),
    "aliases": ("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "aliases"),
    "date": ("model: {path: 2024-13-45}", "model.path"),
    "timestamp": ("model: !!timestamp 2024-13-45", "not valid YAML"),
    "infinity": ("optimiser: {learning_rate: .inf}", "optimiser.learning_rate"),
    "home": ("model: {path: ~nosuchuser/x}", "model.path"),
    "long path": (f"model: {{path: {'x' * 300}}}", "model.path"),
    "binary": ("model: {path: !!binary /w==}", "model.path"),
    "key twice": (
        "algorithm:\n  num_steps: 3\n  num_steps: 4\n",
        "not valid YAML: line 3, column 3: num_steps is there twice, first in line 2",
    ),
    "open list": ("[1,2", "not valid YAML: line 1, column 5: expected"),
    "tab": ("algorithm:\n\tnum_steps: 4", "not valid YAML: line 2, column 1: found character"),
    "list of keys": ("? [a]\n: b\n", "not valid YAML"),
    "empty key": ('"": {a: b}', "unknown key"),
    "number as key": ("1: 2", "Keys should be strings"),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_that_no_field_can_hold_is_refused(client, name):
    text, said = CONFIGS[name]
    response = client.post(
        "/api/v1/experiments", {"name": "x", "yaml": text}, content_type="application/json"
    )
    if name == "date":  # a date is text, like any other name of a folder
        assert response.status_code == 201
        return
    assert response.status_code == 422, response.content[:300]
    assert said in response.content.decode()
    form = client.post("/experiments/launch/form/", {"yaml": text})
    assert form.status_code == 200
    preflight = client.post("/experiments/launch/preflight/", {"source": "yaml", "yaml": text})
    assert preflight.status_code == 200


@pytest.mark.parametrize("number", [f"-{'9' * 20}", "9" * 20])
@pytest.mark.parametrize("field", ["group_id", "experiment_id"])
def test_an_id_that_no_row_can_have_is_named(client, field, number):
    answer = client.get(f"/api/v1/trajectories?{field}={number}")
    assert answer.status_code == 422
    assert field in str(answer.json()["error"]["fields"])


@pytest.mark.parametrize("path", ["/replay/undo/", "/rewards/save/", "/experiments/cancel/", "/logout/"])
def test_the_address_of_a_form_is_a_page_in_words_when_it_is_opened(client, path):
    answer = client.get(path)
    assert answer.status_code == 405
    assert "POST" in answer["Allow"]
    assert "only takes what a form or a button sends" in answer.content.decode()


def test_errors_of_the_api_are_json(client):
    response = client.get("/api/v1/nothing")
    assert (response.status_code, response.json()["error"]["code"]) == (404, "not_found")


def test_a_script_without_a_token_is_told_401(things):
    client = Client(enforce_csrf_checks=True)
    response = client.post("/api/v1/experiments", {"name": "x"}, content_type="application/json")
    assert (response.status_code, response.json()["error"]["code"]) == (401, "unauthorized")
    client.force_login(things["user"])
    response = client.post("/api/v1/experiments", {"name": "x"}, content_type="application/json")
    assert (response.status_code, response.json()["error"]["code"]) == (403, "refused")


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (OperationalError("database is locked"), 503, "busy"),
        (OperationalError("database or disk is full"), 507, "disk"),
        (OSError(28, "No space left on device"), 507, "disk"),
        (RuntimeError("a bug"), 500, "broke"),
    ],
)
@pytest.mark.parametrize("path", ["/api/v1/me", "/login/"])
def test_what_is_not_the_callers_fault_is_told_truly(path, error, status, said):
    request = RequestFactory().get(path)
    try:
        raise error
    except type(error):
        response = error_pages.server_error(request)
    assert response.status_code == status
    assert said in response.content.decode()
    assert ("application/json" in response["Content-Type"]) == path.startswith("/api/")


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="only SQLite locks its whole database")
def test_signing_in_while_the_database_is_locked_is_told_truly(monkeypatch):
    import sqlite3

    make_user("admin", name="ada")
    connection.close()
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "timeout", 0.2)
    other = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        client = Client(raise_request_exception=False)
        response = client.post("/login/", {"username": "ada", "password": PASSWORD})
    finally:
        other.execute("ROLLBACK")
        other.close()
        connection.close()
    assert response.status_code == 503
    assert "database is busy" in response.content.decode()
    assert response["Retry-After"]
