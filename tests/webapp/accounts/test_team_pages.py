"""Sign-in, team and profile pages in the browser's terms."""

import re

import pytest
from django.test import Client

from testing.factories import PASSWORD, make_team, make_user
from webapp.accounts.models import Membership, Role
from webapp.accounts.services.tokens import find_token

pytestmark = pytest.mark.django_db


def signs_in(username: str, password: str) -> bool:
    return Client().post("/login/", {"username": username, "password": password}).status_code == 302


@pytest.fixture
def team():
    return make_team("red")


@pytest.fixture
def admin(team):
    return make_user("admin", team=team, name="ada")


@pytest.fixture
def browser_of_admin(client, admin):
    client.force_login(admin)
    return client


def test_signing_in_leads_to_where_one_wanted(client, admin):
    response = client.get("/team/")
    assert response["Location"] == "/login/?next=/team/"
    wrong = client.post("/login/", {"username": "ada", "password": "wrong"})
    assert wrong.status_code == 200
    right = client.post("/login/?next=/team/", {"username": "ada", "password": PASSWORD})
    assert right["Location"] == "/team/"
    assert "red" in client.get("/team/").content.decode()
    client.post("/logout/")
    assert client.get("/team/").status_code == 302


def test_an_admin_adds_somebody_new_whose_password_is_shown_once(browser_of_admin, team):
    response = browser_of_admin.post("/team/members/", {"username": "bob", "role": "annotator"}, follow=True)
    password = re.search(r"<b>bob</b>: password <code>([^<]+)</code>", response.content.decode())[1]
    assert signs_in("bob", password)
    assert Membership.objects.get(user__username="bob").role == Role.ANNOTATOR
    assert password not in browser_of_admin.get("/team/").content.decode()


def test_a_name_in_other_capitals_makes_no_second_account(browser_of_admin, team):
    make_user(team=make_team(), name="bob")
    said = browser_of_admin.post("/team/members/", {"username": "Bob", "role": "viewer"}, follow=True)
    assert "bob exists" in said.content.decode()
    assert not Membership.objects.filter(team=team, user__username__iexact="bob").exists()
    browser_of_admin.post("/team/members/", {"username": "bob", "role": "viewer"})
    assert Membership.objects.filter(team=team, user__username="bob").exists()


def test_adding_a_member_twice_or_a_bad_name_says_what_is_wrong(browser_of_admin, team):
    make_user(team=team, name="bob")
    twice = browser_of_admin.post("/team/members/", {"username": "bob", "role": "viewer"}, follow=True)
    assert "bob is in red already" in twice.content.decode()
    bad = browser_of_admin.post(
        "/team/members/", {"username": "a b", "role": "king"}, follow=True
    ).content.decode()
    assert "username: " in bad
    assert "role: " in bad


def test_an_admin_changes_roles_and_removes_but_a_team_keeps_an_admin(browser_of_admin, team, admin):
    member = make_user(team=team).memberships.get()
    browser_of_admin.post(f"/team/members/{member.pk}/role/", {"role": "operator"})
    member.refresh_from_db()
    assert member.role == "operator"
    own = admin.memberships.get()
    for path, body in (("role/", {"role": "viewer"}), ("remove/", {})):
        response = browser_of_admin.post(f"/team/members/{own.pk}/{path}", body, follow=True)
        assert "only admin" in response.content.decode()
    assert admin.memberships.get().role == "admin"
    browser_of_admin.post(f"/team/members/{member.pk}/remove/")
    assert not Membership.objects.filter(pk=member.pk).exists()


def test_another_teams_members_are_out_of_reach(browser_of_admin):
    other = make_user().memberships.get()
    assert browser_of_admin.post(f"/team/members/{other.pk}/remove/").status_code == 404
    assert browser_of_admin.post(f"/team/members/{other.pk}/password/").status_code == 404


def test_a_new_password_works_but_not_for_people_of_other_teams(browser_of_admin, team):
    user = make_user(team=team, name="bob")
    team.memberships.filter(user=user).update(made_account=True)
    response = browser_of_admin.post(f"/team/members/{user.memberships.get().pk}/password/", follow=True)
    password = re.search(r"<b>bob</b>: password <code>([^<]+)</code>", response.content.decode())[1]
    assert signs_in("bob", password)
    Membership.objects.create(team=make_team(), user=user, role="viewer")
    here = team.memberships.get(user=user)
    response = browser_of_admin.post(f"/team/members/{here.pk}/password/", follow=True)
    assert "belongs to other teams" in response.content.decode()


def test_adding_a_person_to_a_team_is_no_way_to_their_account(browser_of_admin, team):
    make_user(None, name="eve")
    browser_of_admin.post("/team/members/", {"username": "eve", "role": "viewer"})
    held = team.memberships.get(user__username="eve")
    response = browser_of_admin.post(f"/team/members/{held.pk}/password/", follow=True)
    assert "was not made by this one" in response.content.decode()
    assert signs_in("eve", PASSWORD)


def test_a_viewer_sees_the_members_but_no_forms(client, team, admin):
    client.force_login(make_user(team=team))
    text = client.get("/team/").content.decode()
    assert "ada" in text
    assert "/team/members/" not in text
    assert client.post("/team/members/", {"username": "x", "role": "admin"}).status_code == 403


def test_the_current_team_is_chosen_per_session_and_stays_ones_own(client, team):
    user = make_user(team=team)
    second = make_team("blue")
    Membership.objects.create(team=second, user=user, role="admin")
    client.force_login(user)
    assert "<h1>Members of red<" in client.get("/team/").content.decode()
    response = client.post(f"/teams/{second.pk}/switch/", {"next": "/team/"})
    assert response["Location"] == "/team/"
    assert "<h1>Members of blue<" in client.get("/team/").content.decode()
    away = client.post(f"/teams/{second.pk}/switch/", {"next": "https://evil.example/"})
    assert away["Location"] == "/"
    assert client.post(f"/teams/{second.pk}/switch/", {"next": "0"})["Location"] == "0", "no name of a view"
    assert client.post(f"/teams/{make_team().pk}/switch/").status_code == 404


def test_a_token_is_shown_once_and_only_its_owner_can_revoke_it(browser_of_admin, admin):
    wanted = {"name": "laptop", "scope": "read", "days": "30"}
    response = browser_of_admin.post("/profile/tokens/", wanted, follow=True)
    secret = re.search(r"<code>(dh_[^<…]{20,})</code>", response.content.decode())[1]
    assert find_token(secret).user == admin
    assert secret not in browser_of_admin.get("/profile/").content.decode()
    token = admin.api_tokens.get()
    stranger = Client()
    stranger.force_login(make_user())
    assert stranger.post(f"/profile/tokens/{token.pk}/revoke/").status_code == 404
    browser_of_admin.post(f"/profile/tokens/{token.pk}/revoke/")
    assert find_token(secret) is None


def test_changing_the_own_password_keeps_the_session(browser_of_admin, admin):
    body = {
        "old_password": PASSWORD,
        "new_password1": "another long one 9",
        "new_password2": "another long one 9",
    }
    assert browser_of_admin.post("/profile/password/", body)["Location"] == "/profile/"
    assert browser_of_admin.get("/profile/").status_code == 200
    bad = browser_of_admin.post("/profile/password/", body | {"old_password": "wrong"})
    assert "field-error" in bad.content.decode()


def test_a_signed_out_script_gets_401_and_a_page_goes_to_the_sign_in_page(client):
    assert client.get("/team/", headers={"sec-fetch-dest": "empty"}).status_code == 401
    response = client.get("/team/", headers={"sec-fetch-dest": "document"})
    assert response.status_code == 302
    assert response["Location"] == "/login/?next=/team/"


def test_a_person_without_a_team_has_a_profile_and_is_told_what_is_missing(client):
    client.force_login(make_user(None))
    assert "You belong to no team yet" in client.get("/profile/").content.decode()
    refused = client.get("/experiments/")
    assert refused.status_code == 403
    assert "You belong to no team yet" in refused.content.decode()
