"""A provider, or who answers in its place, that sends what none would: no one is signed in."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User
from joserfc import jws
from joserfc.jwk import OctKey, RSAKey
from joserfc.jws import JWSRegistry

from testing.servers.canned_server import CannedServer, canned_server
from webapp.accounts.identity_providers.oidc import provider

pytestmark = pytest.mark.django_db
KEY = RSAKey.generate_key(2048, parameters={"kid": "k"})
LEFT_OUT = object()
DISCOVERY, KEYS, TOKEN, PERSON = "/.well-known/openid-configuration", "/keys", "/token", "/person"


class Issuer:
    """An honest one, until a test changes its answers."""

    def __init__(self, server: CannedServer) -> None:
        self.url, self.answers = server.url, server.answers
        self.metadata = {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorise",
            "token_endpoint": f"{self.url}{TOKEN}",
            "jwks_uri": f"{self.url}{KEYS}",
            "userinfo_endpoint": f"{self.url}{PERSON}",
        }
        self.answers[DISCOVERY] = self.metadata
        self.answers[KEYS] = {"keys": [KEY.as_dict(private=False)]}
        self.answers[PERSON] = {}

    def token(self, claims: dict[str, Any], *, header: dict[str, Any] | None = None, key: Any = KEY) -> Any:
        """What the token endpoint answers."""
        header = header or {"alg": "RS256", "kid": "k"}
        body = json.dumps(claims).encode()
        signed = jws.serialize_compact(header, body, key, registry=JWSRegistry(algorithms=[header["alg"]]))
        return {"access_token": "a", "token_type": "Bearer", "id_token": signed}


@pytest.fixture
def issuer(settings, monkeypatch) -> Iterator[Issuer]:
    monkeypatch.setenv("DESKHAND_SECRET_OIDC_CLIENT_SECRET", "secret")
    with canned_server() as server:
        settings.OIDC_ISSUER, settings.OIDC_GROUPS = server.url, []
        provider._client.cache_clear()
        yield Issuer(server)
    provider._client.cache_clear()


def come_back(client, issuer: Issuer, token: Any = None, **claims: Any):
    """Away to the provider, and back with its answer; the last page."""
    to = client.get("/login/sso/", follow=False)
    if "state" not in to["Location"]:
        return client.get(to["Location"])
    asked = {name: values[0] for name, values in parse_qs(urlsplit(to["Location"]).query).items()}
    now = int(time.time())
    honest = {"iss": issuer.url, "aud": asked["client_id"], "iat": now, "exp": now + 60, "sub": "s"}
    said = {**honest, "nonce": asked["nonce"], "groups": [], **claims}
    said = {name: claim for name, claim in said.items() if claim is not LEFT_OUT}
    if token is None:
        token = issuer.token
    issuer.answers[TOKEN] = token(said) if callable(token) else token
    return client.get("/login/sso/callback/", {"code": "c", "state": asked["state"]}, follow=True)


def is_in(answer) -> bool:
    return "_auth_user_id" in answer.client.session


def test_what_an_honest_one_says_lets_the_person_in(client, issuer):
    assert is_in(come_back(client, issuer, preferred_username="alice"))


CLAIMS: dict[str, dict[str, Any]] = {
    "another issuer": {"iss": "https://elsewhere.example"},
    "another client": {"aud": "another"},
    "of yesterday": {"exp": int(time.time()) - 86_400},
    "another nonce": {"nonce": "other"},
    "no nonce": {"nonce": None},
    "no subject": {"sub": ""},
    "a subject that is a list": {"sub": ["s"]},
    "a subject that no column holds": {"sub": "s" * 256},
    "a subject with a zero byte": {"sub": "a\0b"},
    "half a letter": {"sub": "\ud800"},
    "an address that no column holds": {"email": "x" * 300 + "@example.com"},
    "an address with a zero byte": {"email": "a\0@example.com"},
    "an address with half a letter": {"email": "\udfff@example.com"},
    "a name with a zero byte": {"preferred_username": "a\0b"},
    "a name that is an object": {"preferred_username": {"a": 1}},
    "an end that is no number": {"exp": "never"},
}


@pytest.mark.parametrize("name", CLAIMS)
def test_a_signed_claim_that_is_none_signs_no_one_in(client, issuer, name):
    answer = come_back(client, issuer, **({"preferred_username": "bob"} | CLAIMS[name]))
    assert answer.redirect_chain[-1][0] == "/login/"
    assert not is_in(answer)
    assert not User.objects.exists()


def _unsigned(issuer: Issuer, claims: dict[str, Any]) -> Any:
    def part(of: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(of).encode()).rstrip(b"=").decode()

    return {
        "access_token": "a",
        "token_type": "Bearer",
        "id_token": f"{part({'alg': 'none'})}.{part(claims)}.",
    }


def _by_a_password(issuer: Issuer, claims: dict[str, Any]) -> Any:
    """Signed with a password that the list of keys holds."""
    key = OctKey.import_key("secret" * 8, {"kid": "o"})
    issuer.answers[KEYS] = {"keys": [KEY.as_dict(private=False), key.as_dict(private=True)]}
    return issuer.token(claims, header={"alg": "HS256", "kid": "o"}, key=key)


def _another_key(issuer: Issuer, claims: dict[str, Any]) -> Any:
    return issuer.token(claims, key=RSAKey.generate_key(2048, parameters={"kid": "k"}))


@pytest.mark.parametrize("forged", [_unsigned, _by_a_password, _another_key])
@pytest.mark.parametrize("offers", [None, ["none", "HS256", "RS256"]])
def test_a_token_that_the_provider_has_not_signed_is_refused(client, issuer, forged, offers):
    if offers:
        issuer.metadata["id_token_signing_alg_values_supported"] = offers
    answer = come_back(client, issuer, lambda claims: forged(issuer, claims), preferred_username="carol")
    assert not is_in(answer)
    assert not User.objects.exists()


ANSWERS = [b"", b"[]", b"null", b"1", b'"x"', b"{", b"\xff\xfe", b"{}", b'{"keys": 1}', b'{"keys": [1]}',
           b'{"issuer": []}', b'{"id_token": 1, "access_token": 2}', b'{"id_token": "a.b.c"}',
           b'{"error": {"a": 1}}', b"[" * 100_000]  # fmt: skip


@pytest.mark.parametrize("path", [DISCOVERY, KEYS, TOKEN, PERSON])
def test_an_answer_of_another_kind_is_a_refusal_and_no_error(client, issuer, path):
    for body in ANSWERS:
        provider._client.cache_clear()
        issuer.answers[path] = body
        token = body if path == TOKEN else None
        groups = {"groups": LEFT_OUT} if path == PERSON else {}
        answer = come_back(client, issuer, token, preferred_username="dave", **groups)
        assert answer.status_code in (200, 403), body  # 403: a person without a team
        assert not is_in(answer) or path == PERSON, body
        client.logout()


@pytest.mark.parametrize("where", ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "", 7])
def test_no_browser_is_sent_to_an_address_that_is_none(client, issuer, where):
    issuer.metadata["authorization_endpoint"] = where
    answer = client.get("/login/sso/")
    assert answer.status_code == 302
    assert answer["Location"] == "/login/"


@pytest.mark.parametrize("where", ["file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://x", 7])
def test_the_secret_goes_to_no_address_that_is_none(client, issuer, where):
    issuer.metadata["token_endpoint"] = where
    assert not is_in(come_back(client, issuer, preferred_username="erin"))
