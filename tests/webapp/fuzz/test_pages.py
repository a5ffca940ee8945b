"""Every route outside the API, with values that no page sends: never an answer of 500.

The names of fields are read from the source, so that a new field is tried without a row here.
"""

import json
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from testing.hostile_values import json_values, texts
from testing.page_addresses import PATHS, address, field_names
from testing.web_world import World

pytestmark = pytest.mark.django_db

ROLES = ("owner", "teammate", "stranger", "anonymous")
QUICK, THOROUGH = 6, 150
"""Requests of one person to one route."""
BOUNDED = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


CONTENT_TYPES = (
    "application/json",
    "application/json; charset=utf-16",
    "multipart/form-data; boundary=b",
    "multipart/form-data",
    "application/x-www-form-urlencoded; charset=utf-16",
    "text/plain",
    "x",
)


@st.composite
def requests(draw: st.DrawFn) -> dict[str, object]:
    """Method, query, body and content type."""
    fields = st.dictionaries(st.sampled_from(field_names()) | texts, texts, max_size=5)
    found: dict[str, object] = {"method": draw(st.sampled_from(["get", "post"])), "query": draw(fields)}
    kind = draw(st.sampled_from(["form", "form", "multipart", "json", "raw"]))
    if found["method"] == "get":
        return found
    if kind in ("form", "multipart"):
        found["body"] = draw(fields)
    elif kind == "json":
        found["body"] = draw(json_values | st.dictionaries(st.sampled_from(field_names()), json_values))
    else:
        found["body"] = draw(st.binary(max_size=60))
        found["content_type"] = draw(st.sampled_from(CONTENT_TYPES))
    return found | {"kind": kind}


def send(client: Client, path: str, wish: dict[str, object]) -> int:
    """The status of the answer to one request."""

    def form(values: object) -> str:
        return urlencode({key: str(value) for key, value in dict(values).items()}, errors="surrogatepass")

    where = f"{path}?{form(wish['query'])}" if wish["query"] else path
    if wish["method"] == "get":
        return client.get(where).status_code
    body = wish["body"]
    if wish["kind"] == "json":
        return client.post(where, json.dumps(body), content_type="application/json").status_code
    if wish["kind"] == "form":
        kind = "application/x-www-form-urlencoded"
        return client.post(where, form(body), content_type=kind).status_code
    if wish["kind"] == "multipart":
        values = {key: str(value).encode("utf-8", "replace").decode() for key, value in dict(body).items()}
        return client.post(where, values).status_code
    return client.generic("POST", where, body, content_type=str(wish["content_type"])).status_code


def try_everything(world: World, clients: dict[str, Client], path: str, examples: int) -> None:
    where = address(path, world)

    @settings(BOUNDED, max_examples=examples)
    @given(wish=requests(), role=st.sampled_from(ROLES))
    def one(wish: dict[str, object], role: str) -> None:
        if "logout" in path or "password" in path:
            role = "anonymous"  # the others would be signed out for what follows
        status = send(clients[role], where, wish)
        assert status < 500 or status in (503, 507), (role, where, wish)
        assert connection.connection is None or not connection.needs_rollback

    one()


@pytest.mark.parametrize("path", PATHS)
def test_no_page_breaks(lasting_world, clients, path):
    try_everything(lasting_world, clients, path, QUICK)


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("path", PATHS)
def test_no_page_breaks_thoroughly(lasting_world, clients, path):
    try_everything(lasting_world, clients, path, THOROUGH)


def test_all_pages_are_tried():
    assert {"/experiments/{pk}/", "/replay/transfer/", "/fleet/desktops/{name}/{verb}/"} <= set(PATHS)
    assert {"entry", "before", "from_step", "num_tasks", "priority", "indexes"} <= set(field_names())
