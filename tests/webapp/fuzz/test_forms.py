"""Every form of every page, filled in as the page offers it but for one or two hostile fields.

What random fields never reach is tried here: what a view does behind its first check.
"""

import pytest
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from testing.hostile_values import texts
from testing.page_addresses import PATHS, address
from testing.page_forms import Form, forms_of
from testing.web_world import World, make_world

pytestmark = pytest.mark.django_db

QUICK, THOROUGH = 1, 40
"""Requests by one form."""
ENDS_THE_SESSION = ("logout", "password", "/teams/")
SEEN: set[object] = set()
"""Forms of the pages before."""
BOUNDED = settings(suppress_health_check=list(HealthCheck))


@pytest.fixture
def owner(db: None) -> tuple[World, Client]:
    world = make_world()
    world.users["owner"].is_superuser = world.users["owner"].is_staff = True
    world.users["owner"].save()
    client = Client(raise_request_exception=False)
    client.force_login(world.users["owner"])
    return world, client


def forms_at(client: Client, where: str) -> list[Form]:
    answer = client.get(where)
    if answer.status_code != 200 or answer.streaming or "html" not in answer["content-type"]:
        return []
    return forms_of(where, answer.content.decode())


@st.composite
def filled_in(draw: st.DrawFn, form: Form) -> dict[str, list[str]]:
    """The form's fields, one or two of them changed."""
    names = sorted(form.values) or ["x"]
    changed = draw(
        st.dictionaries(st.sampled_from(names), st.lists(texts, max_size=2), min_size=1, max_size=2)
    )
    return form.values | changed


def _sendable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def try_form(client: Client, form: Form, examples: int) -> None:
    @settings(BOUNDED, max_examples=examples)
    @given(filled_in(form))
    def one(values: dict[str, list[str]]) -> None:
        sent = {name: list(map(_sendable, found)) for name, found in values.items()}
        status = client.post(form.path, sent).status_code
        assert status < 500 or status in (503, 507), (form.path, values)

    one()


def try_forms(owner: tuple[World, Client], path: str, examples: int, tried: set[object]) -> int:
    """How many forms of a page were tried that no page before it had."""
    world, client = owner
    forms = [form for form in forms_at(client, address(path, world)) if form.key not in tried]
    for form in forms:
        tried.add(form.key)
        if any(part in form.path for part in ENDS_THE_SESSION):
            continue
        try_form(client, form, examples)
    return len(forms)


def test_no_form_breaks(owner):
    tried: set[object] = set()
    assert sum(try_forms(owner, path, QUICK, tried) for path in PATHS) > 40


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("path", PATHS)
def test_no_form_breaks_thoroughly(owner, path):
    try_forms(owner, path, THOROUGH, SEEN)
