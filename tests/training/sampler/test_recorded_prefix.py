"""A branch's policy goes on from recorded turns as if it had sampled them in this very session."""

from __future__ import annotations

import httpx
import pytest

from testing.training.tiny_model import screenshot
from tests.training.sampler.test_server import TOKEN, _auth, ask, server
from workers.env.policy_client import PolicyClient, PolicyError, RecordedTurn

__all__ = ["server"]
TEXT = "Choose row 4."


@pytest.fixture
def client(server):
    return PolicyClient(server, TOKEN)


def greedy(client, name, turn, *, seed, text=""):
    return client.complete(
        name, turn_index=turn, text=text, screenshot=screenshot(seed), temperature=0.0, max_tokens=8
    )


def recorded(client, name: str) -> list[RecordedTurn]:
    """Two turns that a session of this name really took."""
    first = ask(client, name, 0, seed=1, text=TEXT)
    second = ask(client, name, 1, seed=2, text="")
    return [RecordedTurn(TEXT, first, screenshot(1)), RecordedTurn("", second, screenshot(2))]


def test_the_next_completion_is_the_one_that_the_first_session_would_have_given(client):
    turns = recorded(client, "parent")
    expected = greedy(client, "parent", 2, seed=3)
    client.resume("branch", turns)
    client.resume("branch", turns)  # a repeated request changes nothing
    found = greedy(client, "branch", 2, seed=3)
    assert found.token_ids == expected.token_ids
    assert found.num_prompt_tokens == expected.num_prompt_tokens
    assert found.behaviour_logprobs == pytest.approx(expected.behaviour_logprobs, abs=2e-3)
    assert (
        client.complete("branch", turn_index=1, text="", screenshot=None, temperature=1.0, max_tokens=8)
        == turns[1].completion
    )


def test_branches_of_one_record_are_independent(client):
    turns = recorded(client, "root")
    for name in ("left", "right"):
        client.resume(name, turns[:1])
    left = ask(client, "left", 1, seed=7, text="")
    right = ask(client, "right", 1, seed=8, text="")
    assert left.num_prompt_tokens == right.num_prompt_tokens == turns[1].completion.num_prompt_tokens
    assert ask(client, "left", 1, seed=7, text="") == left


def test_a_record_of_another_prompt_is_refused_instead_of_continued_wrongly(client):
    turns = recorded(client, "other")
    turns[0] = RecordedTurn("Another, much longer instruction.", turns[0].completion, turns[0].screenshot)
    with pytest.raises(PolicyError, match="turn 0 was sampled after") as refused:
        client.resume("wrong", turns)
    assert (refused.value.status, refused.value.code) == (409, "prefix_mismatch")
    ask(client, "wrong", 0)  # nothing was half-done: the session is as new


def test_a_record_of_other_words_of_the_same_length_is_refused(client):
    turns = recorded(client, "worded")
    digest = turns[1].completion.prompt_digest
    assert digest
    other = turns[1].completion.model_copy(update={"prompt_digest": digest[::-1]})
    with pytest.raises(PolicyError, match="turn 1 was sampled after other words"):
        client.resume("reworded", [turns[0], RecordedTurn("", other, turns[1].screenshot)])


def test_a_record_of_another_tokenizer_is_refused_although_it_would_fit(client):
    turns = recorded(client, "foreign")
    line = turns[1].completion.fingerprint
    other = turns[1].completion.model_copy(update={"fingerprint": f"tokenizer:x {line.partition(' ')[2]}"})
    with pytest.raises(PolicyError, match="turn 1 was sampled with another tokenizer"):
        client.resume("elsewhere", [turns[0], RecordedTurn("", other, turns[1].screenshot)])


def test_a_trajectory_that_went_its_own_way_takes_no_prefix(client):
    turns = recorded(client, "source")
    ask(client, "taken", 0, seed=5)
    with pytest.raises(PolicyError, match="turns of its own") as refused:
        client.resume("taken", turns)
    assert refused.value.status == 409


@pytest.mark.parametrize(
    ("body", "words"), [({"other": "{}"}, "request"), ({"request": '{"turns": [{"text": 3}]}'}, "turns")]
)
def test_bad_requests_name_what_is_wrong(server, body, words):
    files = {name: (None, value, "application/json") for name, value in body.items()}
    answer = httpx.post(
        f"{server}/trajectories/x/prefix", files=files, headers=_auth(), trust_env=False, timeout=60
    )
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]
