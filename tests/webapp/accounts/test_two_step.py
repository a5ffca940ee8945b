"""Two-step sign-in: turned on with an app, asked for everywhere a password is, recovered, turned off."""

import pytest
from django.contrib.auth.models import User
from django_otp.oath import totp
from django_otp.plugins.otp_static.models import StaticDevice
from django_otp.plugins.otp_totp.models import TOTPDevice

from testing.factories import PASSWORD, make_user
from testing.page_text import page_text
from webapp.accounts.models import AuditEntry
from webapp.accounts.services.tokens import create_token
from webapp.accounts.two_step import services

pytestmark = pytest.mark.django_db
WRONG = "The name, the password or the code is wrong"


def code_of(user, steps=0):
    """What the person's app shows, `steps` of half a minute from now."""
    app = TOTPDevice.objects.get(user=user)
    return f"{totp(app.bin_key, t0=-30 * steps):06d}"


@pytest.fixture
def user(client):
    """A person who has turned it on, with their recovery codes in `user.codes`."""
    found = make_user("operator", name="olga")
    client.force_login(found)
    page = page_text(client.get("/profile/two-step/"))
    assert "data:image/svg+xml" in page
    client.post("/profile/two-step/on/", {"code": code_of(found)})
    page = page_text(client.get("/profile/two-step/"))
    found.codes = page.partition("shown only this once: <code>")[2].partition("</span>")[0].split("<code>")
    found.codes = [text.partition("</code>")[0] for text in found.codes]
    client.post("/logout/")
    return found


def sign_in(client, code="", password=PASSWORD):
    # A sign-in that failed delays the next one of the same app: that is django-otp's own, not tried here.
    for model in (TOTPDevice, StaticDevice):
        model.objects.update(throttling_failure_count=0, throttling_failure_timestamp=None)
    answer = client.post("/login/", {"username": "olga", "password": password, "code": code})
    assert answer.status_code == 302 or WRONG in page_text(answer)
    return answer.status_code == 302


def test_the_password_alone_lets_in_no_more(client, user):
    assert not sign_in(client)
    assert not sign_in(client, "000000")
    assert not sign_in(client, code_of(user, 1), password="wrong")
    assert AuditEntry.objects.filter(action="sign_in_failed", person=user).count() == 3
    assert sign_in(client, code_of(user, 1))
    assert client.get("/profile/").status_code == 200


def test_a_code_counts_once(client, user):
    code = code_of(user, 1)
    assert sign_in(client, code)
    client.post("/logout/")
    assert not sign_in(client, code)


def test_a_recovery_code_stands_in_for_the_app_once(client, user):
    assert len(set(user.codes)) == services.NUM_RECOVERY_CODES
    assert sign_in(client, user.codes[3])
    client.post("/logout/")
    assert not sign_in(client, user.codes[3])
    assert sign_in(client, user.codes[4])


def test_guessing_codes_locks_the_name_like_guessing_passwords(client, user):
    answers = [
        client.post("/login/", {"username": "olga", "password": PASSWORD, "code": "1"}) for _ in range(9)
    ]
    assert answers[-1].status_code == 429


def test_the_admin_site_has_no_sign_in_of_its_own(client, user):
    User.objects.filter(pk=user.pk).update(is_staff=True, is_superuser=True)
    answer = client.post("/admin/login/?next=/admin/", {"username": "olga", "password": PASSWORD})
    assert answer.status_code == 302
    assert answer["Location"] == "/login/?next=/admin/"
    assert client.get("/admin/").status_code == 302
    client.force_login(make_user("viewer"))
    assert client.get("/admin/login/").status_code == 403


def test_it_is_turned_on_with_the_apps_code_and_off_with_the_password_only(client):
    user = make_user("viewer")
    client.force_login(user)
    client.get("/profile/two-step/")
    client.post("/profile/two-step/on/", {"code": "12345x"})
    assert not services.is_on(user)
    TOTPDevice.objects.update(throttling_failure_count=0, throttling_failure_timestamp=None)
    client.post("/profile/two-step/on/", {"code": code_of(user)})
    assert services.is_on(user)
    client.post("/profile/two-step/off/", {"password": "wrong"})
    assert services.is_on(user)
    client.post("/profile/two-step/off/", {"password": PASSWORD})
    assert not services.is_on(user)
    changes = AuditEntry.objects.filter(action="two_step_changed").order_by("id")
    assert [row.detail for row in changes] == [{"to": "on"}, {"to": "off"}]


def test_a_token_needs_no_code(client, user):
    secret = create_token(user=user, name="x")
    answer = client.get("/api/v1/me", headers={"Authorization": f"Bearer {secret}"})
    assert answer.json()["username"] == "olga"
    assert client.get("/api/v1/me").status_code == 401, "no session stands behind it"
    refused = client.get("/api/v1/me", headers={"Authorization": f"Bearer {secret}x"})
    assert refused.status_code == 401
