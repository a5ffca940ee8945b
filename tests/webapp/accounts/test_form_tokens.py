"""Forms that create, sent twice: a double click makes one thing, and both answers lead to it."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from testing.factories import make_task, make_team, make_user
from testing.page_text import page_text
from tests.webapp.launch.test_launch_page import fields
from webapp.accounts.form_tokens import RUNNING
from webapp.accounts.models import ApiToken, Role, SentRequest, Team
from webapp.experiments.models import Experiment
from webapp.fleet.models import JoinToken

pytestmark = pytest.mark.django_db(transaction=True)
URL = "/experiments/launch/"
FIELD = re.compile(r'<input type="hidden" name="form_token" value="([0-9a-f]{32})">')
ADD_HOST = "/fleet/hosts/add/"
WITH_TOKEN = [
    *("experiment-launch", "host-add", "task-editor", "task-upload", "replay-transfer", "scanner-new"),
    *("report-new", "demonstration-start", "notification-list", "team-show", "profile-show"),
    *("reward-lab", "replay-policies"),
]


@pytest.fixture
def team() -> Team:
    return make_team("red")


@pytest.fixture
def person(team: Team, settings: Any, client: Client) -> Client:
    settings.HOSTS_URL = "https://server:8743"
    client.force_login(make_user(Role.ADMIN, team=team))
    return client


def token_of(client: Client, url: str = URL) -> str:
    found = FIELD.search(page_text(client.get(url)))
    assert found is not None
    return found[1]


@pytest.mark.parametrize("route", WITH_TOKEN)
def test_each_form_that_creates_has_a_token_of_its_own(route: str, person: Client) -> None:
    make_task()
    assert token_of(person, reverse(route)) != token_of(person, reverse(route))


def test_a_launch_form_sent_twice_makes_one_and_leads_to_it_twice(person: Client) -> None:
    sent = fields(form_token=token_of(person))
    first, again = person.post(URL, sent), person.post(URL, sent)
    page = reverse("experiment-detail", args=[Experiment.objects.get().pk])
    assert [(answer.status_code, answer["Location"]) for answer in (first, again)] == [(302, page)] * 2


def test_a_double_click_waits_for_the_first_and_leads_to_the_same_page(person: Client) -> None:
    sent = fields(form_token=token_of(person))
    together = threading.Barrier(4)

    def click(_: int) -> str:
        other = Client()
        other.cookies = person.cookies
        together.wait(30)
        try:
            return str(other.post(URL, sent).headers["Location"])
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        pages = set(pool.map(click, range(4)))
    assert pages == {reverse("experiment-detail", args=[Experiment.objects.get().pk])}


def test_a_changed_form_and_a_new_page_make_another(person: Client) -> None:
    """Back, change the name, launch: that is meant."""
    token = token_of(person)
    person.post(URL, fields(form_token=token))
    person.post(URL, fields(form_token=token, experiment_name="Second"))
    person.post(URL, fields(form_token=token_of(person)))
    assert Experiment.objects.count() == 3


def test_a_refused_form_is_read_again(person: Client) -> None:
    """What was wrong may have passed; nothing was made, so nothing is kept."""
    sent = fields(form_token=token_of(person), experiment_name="")
    assert [person.post(URL, sent).status_code for _ in range(2)] == [422, 422]
    assert not SentRequest.objects.exists()


def test_what_is_still_at_work_is_said(person: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webapp.accounts.form_tokens.WAIT_S", 0.0)
    sent = fields(form_token=token_of(person))
    person.post(URL, sent)
    SentRequest.objects.update(status=None)
    answer = person.post(URL, sent)
    assert answer.status_code == 409
    assert RUNNING in page_text(answer)


def test_a_join_token_is_made_once_and_shown_again(person: Client) -> None:
    sent = {"role": "env", "form_token": token_of(person, ADD_HOST)}
    first, again = person.post(ADD_HOST, sent), person.post(ADD_HOST, sent)
    assert JoinToken.objects.count() == 1
    assert first.content == again.content


def test_an_api_token_is_made_once_and_shown(person: Client) -> None:
    token = token_of(person, reverse("profile-show"))
    sent = {"name": "script", "scope": "read", "days": "30", "form_token": token}
    person.post(reverse("token-create"), sent)
    again = person.post(reverse("token-create"), sent)
    assert ApiToken.objects.count() == 1
    assert "dh_" in page_text(person.get(again["Location"]))


def test_anothers_form_is_another_form(person: Client, team: Team) -> None:
    sent = fields(form_token=token_of(person))
    person.post(URL, sent)
    other = Client()
    other.force_login(make_user(Role.OPERATOR, team=team, name="other"))
    other.post(URL, sent)
    assert Experiment.objects.count() == 2


def test_a_token_that_is_none_is_refused(person: Client) -> None:
    assert person.post(URL, fields(form_token="x" * 256)).status_code == 400
