"""Single sign-on in a browser: an OpenID Connect provider and the web server are processes of their own.

The provider knows this installation as a registered client: it checks its secret and where it sends people.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, expect

from testing.factories import make_team, make_user
from testing.servers.web_server_process import running_server, running_web_server
from webapp.accounts.models import AuditEntry, OidcIdentity
from webapp.lib.supervisor.ports import free_port

ALICE = {"sub": "s-1", "preferred_username": "alice", "email": "alice@example.com", "groups": ["ops"]}
VICTIM = {"sub": "s-2", "preferred_username": "victim", "email": "victim@example.com"}


@pytest.fixture
def signed_out(
    transactional_db: None,
    redis_server: str,
    child_environment: dict[str, str],
    collected_static: None,
    browser: Browser,
    tmp_path: Path,
) -> Iterator[Page]:
    """A page of a browser that no one has signed in with, at an installation with single sign-on."""
    provider_port, port = free_port(), free_port()
    issuer = f"http://localhost:{provider_port}"
    options = ["--require-registration", "true", "--require-nonce", "true", "--port", str(provider_port)]
    people = [part for claims in (ALICE, VICTIM) for part in ("--user-claims", json.dumps(claims))]
    command = [sys.executable, "-m", "oidc_provider_mock", "--host", "localhost", *options, *people]
    probe = f"{issuer}/.well-known/openid-configuration"
    with running_server(command, probe, child_environment, tmp_path / "provider.log"):
        address = f"http://127.0.0.1:{port}/login/sso/callback/"
        answer = httpx.post(f"{issuer}/oauth2/clients", json={"redirect_uris": [address]}, trust_env=False)
        client = answer.raise_for_status().json()
        environment = child_environment | {
            "DESKHAND_OIDC_ISSUER": issuer,
            "DESKHAND_OIDC_CLIENT_ID": client["client_id"],
            "DESKHAND_SECRET_OIDC_CLIENT_SECRET": client["client_secret"],
            "DESKHAND_OIDC_NAME": "Example",
            "DESKHAND_OIDC_GROUPS": "ops=home:operator",
        }
        with running_web_server(environment, tmp_path / "web.log", port) as url:
            context = browser.new_context(base_url=url)
            yield context.new_page()
            context.close()


def test_people_sign_in_at_the_provider_and_come_back_to_the_page_they_wanted(signed_out: Page) -> None:
    make_user("admin", team=make_team("home"))
    make_user("viewer", name="victim")
    page, problems = signed_out, list[str]()
    page.on("console", lambda message: problems.append(message.text))
    page.goto("/trajectories/?status=parked")
    sign_in = page.get_by_role("link", name="Sign in with Example")
    sign_in.click()
    page.get_by_role("button", name="Deny").click()
    expect(page.get_by_role("alert")).to_contain_text("The provider refused")
    page.goto("/trajectories/?status=parked")
    sign_in.click()
    page.get_by_role("button", name="s-2").click()
    expect(page.get_by_role("alert")).to_contain_text("An account victim is here already")
    assert not OidcIdentity.objects.exists()
    page.goto("/trajectories/?status=parked")
    sign_in.click()
    page.get_by_role("button", name="s-1").click()
    expect(page).to_have_url(re.compile(r"^http://127\.0\.0\.1:\d+/trajectories/\?status=parked$"))
    alice = User.objects.get(username="alice")
    assert [(row.team.name, row.role) for row in alice.memberships.all()] == [("home", "operator")]
    assert AuditEntry.objects.filter(action="signed_in", person=alice).exists()
    page.goto("/experiments/launch/")
    expect(page.get_by_role("heading", name="Launch", exact=False).first).to_be_visible()
    assert [text for text in problems if "Content Security Policy" in text] == []
