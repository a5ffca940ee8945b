"""What the port of joined hosts serves, and to whom."""

from __future__ import annotations

import json

import pytest
from django.test import Client, RequestFactory
from django.urls import set_urlconf

from testing.factories import make_team, make_user
from testing.fleet_rows import make_joined_host
from webapp.accounts.models import Scope
from webapp.accounts.services.tokens import create_token
from webapp.body_limit_by_sender import FORM_BYTES, body_limit
from webapp.hosts_asgi import ROUTES
from webapp.lib.asgi.one_thread_handler import OneThreadHandler
from webapp.lib.host_links.service_address import ServiceAddress
from webapp.lib.supervisor.process_specs import ProcessTable
from webapp.replay.services.imports import MAX_UPLOAD_BYTES
from webapp.worker_door.joined_hosts.contract_version import version
from webapp.worker_door.joined_hosts.receive import MAX_BODY_BYTES

HEADERS = {"Authorization": "Bearer far:s", "X-Deskhand-Version": version()}
ASK = "/hosts/ask/unended_trajectories/"


PAGES = ("/", "/login/", "/admin/", "/api/v1/me", "/experiments/")
PROBES = ("/metrics", "/readyz", "/healthz", "/static/app.css")


@pytest.mark.parametrize("path", [*PAGES, *PROBES])
@pytest.mark.django_db(transaction=True)
def test_the_port_of_hosts_serves_no_page_no_api_no_sign_in_and_no_probe(path):
    request = RequestFactory().get(path)
    request.urlconf = ROUTES
    response = OneThreadHandler().get_response(request)
    set_urlconf(None)  # Django remembers a request's routes for its thread, which is that of other tests
    assert response.status_code == 404
    assert json.loads(response.content)["error"]["message"] == "this port serves joined hosts only"


def test_the_handler_of_a_port_serves_its_routes():
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b""}
    request, _ = OneThreadHandler(ROUTES).create_request(scope, None)
    assert request.urlconf == ROUTES


@pytest.mark.django_db
def test_a_host_is_heard_over_tls_or_from_this_machine_only():
    make_joined_host("far")
    client = Client(headers=HEADERS)
    assert client.post(ASK, "{}", content_type="application/json").status_code == 200
    far = {"REMOTE_ADDR": "10.0.0.7"}
    plain = client.post(ASK, "{}", content_type="application/json", **far)
    assert (plain.status_code, plain.json()["error"]["code"]) == (403, "plain")
    assert client.post(ASK, "{}", content_type="application/json", secure=True, **far).status_code == 200
    join = client.post("/hosts/join/", "{}", content_type="application/json", **far)
    assert join.json()["error"]["code"] == "plain"


@pytest.mark.django_db
def test_who_may_send_a_large_body_is_read_from_the_headers():
    make_joined_host("far")
    person, team = make_user(team=make_team()), make_team()
    client = Client()
    client.force_login(person)
    cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items())
    token = create_token(user=make_user("operator", team=team), name="t", scope=Scope.READ)
    people = MAX_UPLOAD_BYTES + FORM_BYTES

    def limit(path: str, **headers: str) -> int:
        sent = [(name.encode(), value.encode()) for name, value in headers.items()]
        return body_limit({"path": path, "headers": sent})

    assert limit("/replay/import/") == 0
    assert limit("/replay/import/", cookie=f"{cookies}x") == 0
    assert limit("/replay/import/", cookie=cookies) == people
    assert limit("/api/v1/replay/imports", authorization=f"Bearer {token}") == people
    assert limit("/api/v1/replay/imports", authorization="Bearer dh_wrong") == 0
    assert limit("/hosts/reports/", authorization="Bearer far:s") == MAX_BODY_BYTES
    assert limit("/hosts/reports/", authorization="Bearer far:wrong") == 0
    assert limit("/hosts/join/") == 0
    assert limit("/hosts/reports/", cookie=cookies) == 0


@pytest.mark.parametrize("is_declared", [True, False])
def test_a_word_of_where_a_request_comes_from_counts_only_behind_a_declared_proxy(
    settings, is_declared, tmp_path
):
    settings.BEHIND_HTTPS = is_declared
    folders = dict.fromkeys(("repository", "data_dir", "deskhost_socket", "deskhost_state_dir"), tmp_path)
    table = ProcessTable(
        host="127.0.0.1",
        port=1,
        redis_url="",
        redis_port=1,
        redis_password=None,
        hosts_server=ServiceAddress("10.0.0.1", "10.0.0.1"),
        hosts_port=2,
        slots=1,
        env_workers=1,
        without=frozenset(),
        **folders,
    )
    assert ("--no-proxy-headers" in table.web().argv) is not is_declared
    assert "--no-proxy-headers" in table.hosts().argv
    assert "webapp.hosts_asgi:application" in table.hosts().argv
