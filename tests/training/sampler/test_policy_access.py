"""Whom a policy server lets in, over HTTP: each env host to what it began, and no longer than it is known."""

from __future__ import annotations

import httpx
import pytest

from testing.training.tiny_model import screenshot
from tests.training.sampler.test_server import TOKEN, ask, server  # noqa: F401 (fixture)
from training.contracts.policy_server import PolicyAccess, host_token
from workers.env.policy_client import PolicyClient, PolicyError, RecordedTurn


def host(url: str, name: str, joined_ms: int = 0) -> PolicyClient:
    return PolicyClient(url, host_token(TOKEN, name, joined_ms))


def test_another_hosts_token_neither_reads_nor_ends_a_session(server):  # noqa: F811
    near, far = host(server, "near"), host(server, "far")
    first = ask(near, "7", 0, seed=1)
    with pytest.raises(PolicyError, match="the next turn is 0"):
        ask(far, "7", 1)
    assert ask(far, "7", 0, seed=2) != first, "a session of its own"
    far.forget("7")
    assert ask(near, "7", 0, seed=1) == first, "it is still there"
    assert ask(near, "7", 1).token_ids


def test_another_hosts_token_begins_no_session_in_its_place(server):  # noqa: F811
    near, far = host(server, "near"), host(server, "far")
    own = ask(far, "8", 0)
    far.resume("9", [RecordedTurn(text="Choose row 4.", completion=own, screenshot=screenshot(1))])
    assert ask(near, "9", 0).num_prompt_tokens == own.num_prompt_tokens, "its first turn"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/weights", {"stage": "load", "path": "/tmp", "policy_version": 1}),
        ("POST", "/canary", {}),
        ("POST", "/eyes", {"is_whole": False}),
        ("GET", "/engine", None),
        ("POST", "/sleep", {}),
        ("POST", "/wake", {}),
        ("POST", "/hosts/end", {"hosts": {"near": 2**60}}),
    ],
)
def test_a_hosts_token_opens_trajectories_only(server, method, path, body):  # noqa: F811
    headers = {"Authorization": f"Bearer {host_token(TOKEN, 'far')}"}
    answer = httpx.request(method, server + path, json=body, headers=headers, trust_env=False)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "not_for_hosts")


def test_a_token_ends_with_its_hosts_identity_and_one_that_joins_again_has_a_new_one(server):  # noqa: F811
    before, other, again = host(server, "gone", 1000), host(server, "stays", 1000), host(server, "gone", 3000)
    assert ask(before, "1", 0).token_ids
    headers = {"Authorization": f"Bearer {TOKEN}"}
    answer = httpx.post(
        f"{server}/hosts/end", json={"hosts": {"gone": 2000}}, headers=headers, trust_env=False
    )
    assert answer.status_code == 200
    with pytest.raises(PolicyError, match="unauthorized"):
        ask(before, "1", 1)
    assert ask(other, "1", 0).token_ids
    assert ask(again, "1", 0).token_ids


@pytest.mark.parametrize(
    "forged",
    [
        "",
        "far",
        host_token("another attempt's", "far"),
        host_token(TOKEN, "far", 5).replace(".5.", ".9.", 1),
        host_token(TOKEN, "far").replace(b"far".hex(), b"near".hex()),
        f"..{host_token(TOKEN, 'far').rpartition('.')[2]}",
    ],
)
def test_no_token_is_forged(forged):
    assert PolicyAccess(TOKEN).opener_of(forged) is None
    assert PolicyAccess(TOKEN).opener_of(host_token(TOKEN, "far", 5)) is not None
