"""A team that has nothing yet: every list says what comes next, as a button that leads there."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from testing.factories import make_team, make_user

pytestmark = [pytest.mark.db, pytest.mark.django_db]

LISTS = (
    *("experiment-list", "queue-show", "experiment-compare", "evaluation-matrix", "trajectory-list"),
    *("replay-inbox", "replay-list", "replay-stats", "replay-clusters", "report-list", "task-sets"),
    *("scanner-list", "replay-guides"),
)
BUTTON = re.compile(r'<a class="btn btn-primary" href="([^"]+)">')


@pytest.mark.parametrize("route", LISTS)
def test_an_empty_list_offers_the_next_step(client: Client, route: str):
    client.force_login(make_user("operator", team=make_team()))
    page = client.get(reverse(route)).content.decode()
    place = page.partition('class="empty-state"')[2]
    assert place, "no empty state"
    address = BUTTON.search(place)
    assert address, "no button"
    assert client.get(address[1]).status_code == 200


def test_a_viewer_is_offered_nothing_that_is_refused(client: Client):
    client.force_login(make_user("viewer", team=make_team()))
    offered: dict[str, list[str]] = {}
    for route in LISTS:
        place = client.get(reverse(route)).content.decode().partition('class="empty-state"')[2]
        assert place, f"{route}: no empty state"
        offered[route] = BUTTON.findall(place)
    assert offered["experiment-compare"] == [reverse("experiment-list")], "what a viewer may do is offered"
    assert client.get(reverse("experiment-launch")).status_code == 403, "what only an operator may is refused"
    addresses = {address for found in offered.values() for address in found}
    assert {address for address in addresses if client.get(address).status_code != 200} == set()
