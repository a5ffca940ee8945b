"""Who gets in: wrong passwords are slowed down, tokens end and allow only what they say."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from testing.factories import PASSWORD, make_experiment, make_team, make_user
from webapp.accounts.models import ApiToken, Role, Scope
from webapp.accounts.services.tokens import create_token

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def few_tries(settings):
    """Checking a password is slow on purpose."""
    settings.AXES_FAILURE_LIMIT = 3


def sign_in(username: str, password: str, address: str = "10.0.0.1") -> int:
    body = {"username": username, "password": password}
    return Client().post("/login/", body, REMOTE_ADDR=address).status_code


def test_a_password_cannot_be_guessed_on_and_on(settings):
    make_user(name="ada")
    found = [sign_in("ada", f"wrong {number}") for number in range(settings.AXES_FAILURE_LIMIT)]
    assert set(found[:-1]) == {200}
    assert found[-1] == sign_in("ada", PASSWORD) == 429
    assert sign_in("ada", PASSWORD, address="10.0.0.2") == 302, "the person themself sits elsewhere"
    make_user(name="bob")
    assert sign_in("bob", PASSWORD) == 302, "another person behind the same address"


def test_the_lock_says_what_to_do(settings):
    client = Client()
    for number in range(settings.AXES_FAILURE_LIMIT + 1):
        answer = client.post("/login/", {"username": "ada", "password": f"{number}"})
    assert answer.status_code == 429
    assert "Wait ten minutes" in answer.content.decode()


def launch(client: Client, headers: dict[str, str]) -> int:
    body, kind = {"name": "x"}, "application/json"
    return client.post("/api/v1/experiments", body, content_type=kind, headers=headers).status_code


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize(
    ("scope", "cancels", "launches"),
    [(Scope.READ, 403, 403), (Scope.OPERATE, 200, 201), (Scope.ADMIN, 200, 201)],
)
def test_a_token_allows_only_its_scope(client, scope, cancels, launches):
    team = make_team()
    user = make_user("admin", team=team)
    experiment = make_experiment(team=team, status="queued")
    headers = bearer(create_token(user=user, name="x", scope=scope))
    assert client.get("/api/v1/experiments", headers=headers).status_code == 200
    path = f"/api/v1/experiments/{experiment.pk}/cancel"
    assert client.post(path, content_type="application/json", headers=headers).status_code == cancels
    assert launch(client, headers) == launches
    assert user.memberships.get().role == "admin"


def test_a_refusal_by_scope_names_the_scope_and_one_by_role_the_role(client):
    team = make_team()
    experiment = make_experiment(team=team, status="queued")
    at = f"/api/v1/experiments/{experiment.pk}/cancel"
    said = {}
    for role in (Role.OPERATOR, Role.VIEWER):
        token = create_token(user=make_user(role, team=team), name="x", scope=Scope.READ)
        answer = client.post(at, content_type="application/json", headers=bearer(token))
        assert answer.status_code == 403
        said[role] = answer.json()["error"]["message"]
    assert "the scope of this token is read" in said[Role.OPERATOR]
    assert "profile page" in said[Role.OPERATOR]
    assert "you are viewer" in said[Role.VIEWER]
    assert "scope" not in said[Role.VIEWER]


def test_a_scope_adds_nothing_to_a_role(client):
    headers = bearer(create_token(user=make_user("viewer"), name="x", scope=Scope.ADMIN))
    assert launch(client, headers) == 403


def test_a_token_ends_with_its_time_and_with_the_password(client):
    user = make_user("viewer")
    short, other = (bearer(create_token(user=user, name=name, days=7)) for name in ("a", "b"))
    ApiToken.objects.filter(name="a").update(expires_at=timezone.now() - timedelta(seconds=1))
    assert client.get("/api/v1/me", headers=short).status_code == 401
    assert client.get("/api/v1/me", headers=other).status_code == 200
    user.set_password("another long one 9")
    user.save()
    assert client.get("/api/v1/me", headers=other).status_code == 401
    client.force_login(user)
    assert "Has ended" in client.get("/profile/").content.decode()


@pytest.mark.parametrize("changes", [{"scope": "root"}, {"scope": ""}, {"days": "9999"}, {"days": ""}])
def test_a_token_without_scope_or_end_is_not_made(client, changes):
    client.force_login(make_user())
    client.post("/profile/tokens/", {"name": "x", "scope": "read", "days": "30", **changes})
    assert not ApiToken.objects.exists()
