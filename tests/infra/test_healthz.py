"""/healthz, in process and through a real server."""

import httpx
import pytest
from django.db import connection

from testing.session.environment import ON_POSTGRES
from webapp import __version__

UP = {"status": "ok", "version": __version__}


@pytest.mark.django_db
def test_healthz_needs_no_sign_in(client):
    response = client.get("/healthz")
    assert response.status_code == 200
    assert response.json() == UP


@pytest.mark.django_db
def test_probes_need_no_name_of_the_allowed_hosts(client, settings):
    settings.ALLOWED_HOSTS = ["desk.example.com"]
    assert client.get("/healthz", headers={"host": "127.0.0.1:8700"}).json() == {
        "status": "ok",
        "version": __version__,
    }
    assert client.get("/login/", headers={"host": "127.0.0.1:8700"}).status_code == 400


def test_a_real_web_server_answers_healthz_and_static_files(web_server):
    assert httpx.get(f"{web_server}/healthz", timeout=60).json() == UP
    assert httpx.get(f"{web_server}/static/nothing.css", timeout=60).status_code in {302, 404}


@pytest.mark.django_db
def test_the_chosen_database_answers(django_user_model):
    assert connection.vendor == ("postgresql" if ON_POSTGRES else "sqlite")
    assert django_user_model.objects.count() == 0
