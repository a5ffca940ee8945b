"""Single sign-on against a real provider in a thread: every redirect is followed as a browser would."""

import httpx
import oidc_provider_mock
import pytest
from django.contrib.auth.models import User

from testing.factories import PASSWORD, make_team, make_user
from webapp.accounts.identity_providers.oidc import provider
from webapp.accounts.models import AuditEntry, OidcIdentity

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def issuer():
    """A provider's URL."""
    with oidc_provider_mock.run_server_in_thread() as server:
        yield f"http://localhost:{server.server_port}"


@pytest.fixture(autouse=True)
def configured(settings, issuer, monkeypatch):
    monkeypatch.setenv("DESKHAND_SECRET_OIDC_CLIENT_SECRET", "secret")
    settings.OIDC_ISSUER, settings.OIDC_GROUPS = issuer, []
    provider._client.cache_clear()
    yield
    provider._client.cache_clear()


def know(issuer, subject, **claims):
    """The provider knows this person from now on."""
    assert httpx.put(f"{issuer}/users/{subject}", json=claims, trust_env=False).status_code == 204


def sign_in(client, subject, wanted="/profile/"):
    """From the sign-in page to the provider and back; the last answer."""
    assert "/login/sso/" in client.get("/login/").content.decode()
    to_provider = client.get("/login/sso/", {"next": wanted})
    assert to_provider.status_code == 302, to_provider.content
    authorised = httpx.post(to_provider["Location"], data={"sub": subject}, trust_env=False)
    assert authorised.status_code in (302, 303), authorised.text
    return client.get(authorised.headers["location"].removeprefix("http://testserver"), follow=True)


def refusal(answer):
    """What the sign-in page says."""
    assert answer.redirect_chain[-1][0] == "/login/"
    assert "_auth_user_id" not in answer.client.session
    return answer.content.decode()


def test_a_person_of_the_provider_gets_an_account_and_keeps_it(client, issuer):
    know(issuer, "s-1", preferred_username="alice", email="alice@example.com")
    answer = sign_in(client, "s-1")
    assert answer.redirect_chain[-1][0] == "/profile/"
    user = User.objects.get(username="alice")
    assert (user.email, user.has_usable_password()) == ("alice@example.com", False)
    assert AuditEntry.objects.filter(action="signed_in", person=user).exists()
    client.post("/logout/")
    know(issuer, "s-1", preferred_username="renamed", email="alice@example.com")
    sign_in(client, "s-1")
    assert client.session["_auth_user_id"] == str(user.pk)
    assert client.get("/profile/two-step/").status_code == 403


def test_an_account_that_is_there_is_not_taken_over_by_its_name_or_address(client, issuer):
    victim = make_user("admin", name="victim")
    User.objects.filter(pk=victim.pk).update(email="victim@example.com")
    know(issuer, "evil", preferred_username="victim", email="victim@example.com")
    assert "An account victim is here already" in refusal(sign_in(client, "evil"))
    assert not OidcIdentity.objects.exists()
    assert AuditEntry.objects.get(action="sign_in_failed").detail["how"] == "single sign-on"
    OidcIdentity.objects.create(user=victim, issuer=issuer, subject="evil")  # an administrator connects them
    sign_in(client, "evil")
    assert client.session["_auth_user_id"] == str(victim.pk)


def test_groups_give_roles_in_the_teams_that_are_named_and_take_them_again(client, issuer, settings):
    home, other = make_team("home"), make_team("other")
    make_user("admin", team=home)
    settings.OIDC_GROUPS = ["ops=home:operator", "all=home:viewer", "none=missing:admin"]
    know(issuer, "s-2", preferred_username="bob", groups=["all", "ops"])
    sign_in(client, "s-2")
    bob = User.objects.get(username="bob")
    bob.memberships.create(team=other, role="annotator")
    assert set(bob.memberships.values_list("team__name", "role")) == {
        ("home", "operator"),
        ("other", "annotator"),
    }
    for groups, roles in ((["all"], {("home", "viewer")}), ([], set())):
        client.post("/logout/")
        know(issuer, "s-2", preferred_username="bob", groups=groups)
        sign_in(client, "s-2")
        assert set(bob.memberships.values_list("team__name", "role")) == roles | {("other", "annotator")}
    assert AuditEntry.objects.filter(action="member_removed", object_id="bob").exists()


def test_an_inactive_account_stays_out(client, issuer):
    know(issuer, "s-3", preferred_username="carol")
    sign_in(client, "s-3")
    client.post("/logout/")
    User.objects.filter(username="carol").update(is_active=False)
    assert "not active" in refusal(sign_in(client, "s-3"))


def test_an_answer_that_this_browser_did_not_ask_for_is_refused(client, issuer):
    know(issuer, "s-4", preferred_username="dave")
    assert "DESKHAND" not in refusal(client.get("/login/sso/callback/?code=x&state=made-up", follow=True))
    to_provider = client.get("/login/sso/")
    answer = httpx.post(to_provider["Location"], data={"sub": "s-4"}, trust_env=False).headers["location"]
    other = type(client)()
    refused = other.get(answer.removeprefix("http://testserver"), follow=True)
    assert "_auth_user_id" not in other.session
    assert refused.redirect_chain[-1][0] == "/login/"
    assert not User.objects.filter(username="dave").exists()


def test_a_token_for_another_client_or_issuer_is_refused(client, issuer, settings):
    know(issuer, "s-5", preferred_username="erin")
    to_provider = client.get("/login/sso/")
    answer = httpx.post(to_provider["Location"], data={"sub": "s-5"}, trust_env=False).headers["location"]
    provider._client(issuer, settings.OIDC_CLIENT_ID).server_metadata["issuer"] = "https://elsewhere.example"
    assert "cannot be used" in refusal(client.get(answer.removeprefix("http://testserver"), follow=True))


def test_a_provider_that_does_not_answer_is_said_so(client, settings):
    settings.OIDC_ISSUER = "http://127.0.0.1:9"
    answer = client.get("/login/sso/", follow=True)
    assert "The provider does not answer as one" in answer.content.decode()


def test_nobody_is_sent_elsewhere_afterwards(client, issuer):
    know(issuer, "s-6", preferred_username="frank")
    assert sign_in(client, "s-6", wanted="https://evil.example/").redirect_chain[0][0] == "/"


def test_passwords_go_on_working(client):
    make_user("viewer", name="vera")
    assert client.post("/login/", {"username": "vera", "password": PASSWORD}).status_code == 302


@pytest.mark.parametrize("text", ["ops", "ops=home", "ops=home:king"])
def test_a_mapping_that_cannot_be_read_lets_no_one_in_and_is_named(client, issuer, settings, text):
    settings.OIDC_GROUPS = [text]
    know(issuer, "s-7", preferred_username="gina")
    assert "DESKHAND_OIDC_GROUPS" in refusal(sign_in(client, "s-7"))
    assert not User.objects.filter(username="gina").exists()
