"""The whole OpenAPI schema, for every role: no answer of 500, every answer documented, every error JSON."""

import pytest
import requests
import schemathesis
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from testing.factories import make_user
from testing.web_world import World
from webapp.accounts.models import Role
from webapp.accounts.services.tokens import create_token
from webapp.api.urls import api

pytestmark = pytest.mark.django_db

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
QUICK, THOROUGH = 8, 100
"""Requests to one operation: each of one role, or of every role."""
ANONYMOUS, STRANGER = "anonymous", "stranger"
ROLES = (ANONYMOUS, STRANGER, *Role.values)
OWN_ROWS = {
    "/experiments/": "experiment",
    "/trajectories/": "trajectory",
    "/reports/": "report",
    "/replay/imports/": "import",
    "/replay/": "entry",
    "/controls/": "control",
    "/groups/": "group",
    "/fleet/workers/": "worker",
    "/fleet/hosts/": "host",
    "/fleet/joined/": "joined",
    "/team/members/": "member",
    "/team/retention/": "rule",
    "/tasks/": "task",
}
NAMES = {"/fleet/desktops/": "desktop", "/tasks/": "task_set"}

schema = schemathesis.openapi.from_dict(api.get_openapi_schema())
# Schemathesis' own parametrisation gives all of them one name.
every_operation = pytest.mark.parametrize(
    "operation", [found.ok() for found in schema.get_all_operations()], ids=lambda operation: operation.label
)


@pytest.fixture(scope="module")
def tokens(lasting_world: World, django_db_blocker) -> dict[str, str]:
    """role -> token of a person who has it in the world's team."""
    with django_db_blocker.unblock():
        team = lasting_world.users["owner"].memberships.get().team
        people = {role: make_user(role, team=team) for role in Role.values}
        people[STRANGER] = lasting_world.users["stranger"]
        return {role: create_token(user=user, name="fuzz") for role, user in people.items()}


def send(case: schemathesis.Case, headers: dict[str, str]) -> schemathesis.Response:
    """Through Django's test client, which shares the test's transaction."""
    request = requests.Request(**case.as_transport_kwargs(base_url="http://testserver")).prepare()
    request.headers.update(headers)
    answer = Client(raise_request_exception=False).generic(
        str(request.method),
        request.path_url,
        request.body or b"",
        content_type=request.headers.get("Content-Type", ""),
        headers=dict(request.headers),
    )
    heads = {name: [value] for name, value in answer.items()}
    content = b"".join(answer) if answer.streaming else answer.content
    return schemathesis.Response(answer.status_code, heads, content, request, 0.0, verify=False)


def try_case(case: schemathesis.Case, world: World, tokens: dict[str, str], roles: tuple[str, ...]) -> None:
    """Send it for these roles, to rows that are there and to the ids that were generated."""
    generated = dict(case.path_parameters or {})
    kind = next((kind for part, kind in OWN_ROWS.items() if part in case.path), "")
    there = {"pk": world.paths.get(kind, 1), "wanted": "best", "export_pk": world.paths["export"]}
    there |= {"link_pk": world.paths["link"], "number": 1, "sha256": world.paths["frame"]}
    if named := next((kind for part, kind in NAMES.items() if part in case.path), ""):
        there["name"] = world.paths[named]
    known = {name: there.get(name, value) for name, value in generated.items()}
    for role in roles:
        headers = {} if role == ANONYMOUS else {"Authorization": f"Bearer {tokens[role]}"}
        for parameters in [known] if generated in (known, {}) else [known, generated]:
            case.path_parameters = parameters
            response = send(case, headers)
            case.validate_response(response, checks=CHECKS)
            if response.status_code >= 400:
                assert set(response.json()["error"]) == {"code", "message", "fields"}
            assert role != ANONYMOUS or response.status_code >= 400
            assert role == ANONYMOUS or response.status_code != 401


SETTINGS = settings(
    suppress_health_check=list(HealthCheck),
)


@every_operation
def test_every_operation(operation, lasting_world, tokens):
    @settings(SETTINGS, max_examples=QUICK)
    @given(case=operation.as_strategy(), role=st.sampled_from(ROLES))
    def one(case: schemathesis.Case, role: str) -> None:
        try_case(case, lasting_world, tokens, (role,))

    one()


@pytest.mark.slow
@pytest.mark.postgres
@every_operation
def test_every_operation_thoroughly(operation, lasting_world, tokens):
    @settings(SETTINGS, max_examples=THOROUGH)
    @given(case=operation.as_strategy())
    def one(case: schemathesis.Case) -> None:
        try_case(case, lasting_world, tokens, ROLES)

    one()
