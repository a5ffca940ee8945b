"""The policy server over HTTP, as its own process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
import yaml

from testing.training.teacher_forcing import teacher_forced_logprobs
from testing.training.tiny_model import SIZE, Frames, renderer, screenshot, tiny_folder
from training.content.recipes.tiny.make_checkpoint import make_tiny
from training.contracts.types import Observation, Task, Trajectory, TrajectoryStatus, Turn
from training.render.prompt_digest import prompt_digest
from workers.env.policy_client import ContextFull, PolicyClient, PolicyError

TOKEN = "a-test-token"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """URL of a running policy server."""
    folder = tmp_path_factory.mktemp("policy")
    config, port_file = folder / "config.yaml", folder / "port"
    config.write_text(yaml.safe_dump({"sampling": {"max_context_tokens": 600}}))
    command = [
        sys.executable,
        "-m",
        "training.sampler.server",
        "--model",
        str(tiny_folder()),
        "--config",
        str(config),
    ]
    process = subprocess.Popen(
        [*command, "--port-file", str(port_file)], env={**os.environ, "DESKHAND_POLICY_TOKEN": TOKEN}
    )
    try:
        yield f"http://127.0.0.1:{_port(port_file, process)}"
    finally:
        process.terminate()
        process.wait(60)


def _port(port_file, process) -> str:
    for _ in range(600):
        if port_file.exists():
            break
        assert process.poll() is None, "the server ended before it listened"
        time.sleep(0.1)
    port = port_file.read_text().strip()
    for _ in range(600):
        answer = httpx.get(f"http://127.0.0.1:{port}/health", headers=_auth(), trust_env=False, timeout=60)
        if answer.status_code == 200:
            return port
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"
        time.sleep(0.1)
    raise AssertionError("the server never became ready")


def _auth() -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def client(server):
    return PolicyClient(server, TOKEN)


def ask(client, name, turn, *, seed=1, text="Choose row 4.", max_tokens=8):
    return client.complete(
        name, turn_index=turn, text=text, screenshot=screenshot(seed), temperature=1.0, max_tokens=max_tokens
    )


def test_a_repeated_turn_returns_the_same_completion(client):
    first = ask(client, "repeat", 0)
    assert ask(client, "repeat", 0) == first
    assert first.num_prompt_tokens > 48
    assert len(first.token_ids) == len(first.behaviour_logprobs) <= 8
    assert "alternatives" not in first.model_dump(), "recorded only with sampling.top_logprobs"


def test_what_was_sampled_is_what_the_trainer_renders_and_scores(client):
    reader, frames, turns = renderer(), Frames(), []
    for index in range(3):
        png, text = screenshot(20 + index), "Choose row 2." if index == 0 else "done"
        completion = client.complete(
            "parity", turn_index=index, text=text, screenshot=png, temperature=1.0, max_tokens=8
        )
        assert completion.fingerprint == reader.fingerprint
        observation = Observation(sha256=frames.store(png), width=SIZE[0], height=SIZE[1], text=text)
        turns.append(Turn(index=index, observation=observation, completion=completion))
        before = _render(reader, turns).token_ids[: -len(completion.token_ids)]
        assert completion.num_prompt_tokens == len(before)
        assert completion.prompt_digest == prompt_digest(before)
    rendered = _render(reader, turns)
    from training.sampler.engines.transformers_engine import load_model

    scored = teacher_forced_logprobs(
        load_model(tiny_folder()),
        rendered,
        frames.pixels(reader),
        image_pad_id=reader.image_pad_id,
        banned_ids=reader.banned_ids,
        pad_id=reader.pad_id,
    )
    behaviour = [p for p, m in zip(rendered.behaviour_logprobs, rendered.loss_mask, strict=True) if m]
    assert behaviour == pytest.approx(scored, abs=1e-5)


def _render(reader, turns):
    task = Task(task_id="t", instruction="Choose row 2.")
    return reader.render_trajectory(
        Trajectory(
            trajectory_id=1, group_id=1, task=task, status=TrajectoryStatus.RUNNING, turns=tuple(turns)
        )
    )


def test_many_trajectories_at_once_get_their_own_completions(server):
    def one(number: int):
        client = PolicyClient(server, TOKEN)
        return [ask(client, f"many-{number}", turn, seed=number) for turn in range(2)]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(one, range(8)))
    assert len({completion.token_ids for pair in results for completion in pair}) > 8


def test_a_turn_out_of_order_names_the_expected_one(client):
    with pytest.raises(PolicyError, match="the next turn is 0") as caught:
        ask(client, "jump", 3)
    assert (caught.value.code, caught.value.status) == ("wrong_turn", 409)


def test_a_full_context_is_its_own_error_and_earlier_turns_stay(client):
    first = ask(client, "full", 0)
    with pytest.raises(ContextFull, match="max_context_tokens = 600"):
        ask(client, "full", 1, max_tokens=600)
    assert ask(client, "full", 0) == first
    assert ask(client, "full", 1).num_prompt_tokens > first.num_prompt_tokens


def test_a_forgotten_trajectory_starts_again(client):
    ask(client, "forgotten", 0)
    client.forget("forgotten")
    client.forget("forgotten")
    assert ask(client, "forgotten", 0).policy_version >= 0


def test_new_weights_raise_the_version_and_the_canary_tells(client, tmp_path):
    before = client.canary()
    folder = make_tiny(tmp_path, seed=12)
    assert client.load_weights(str(folder), 4) == 4
    after = client.canary()
    assert after.policy_version == 4
    assert after.token_ids == before.token_ids
    assert after.logprobs != before.logprobs
    served = client.health().model_dump()
    assert served == {"status": "ok", "policy_version": 4, "model": str(tiny_folder())}
    client.load_weights(str(tiny_folder()), 5)
    assert client.canary().logprobs == before.logprobs


@pytest.mark.parametrize("path", ["/nowhere", "/tmp"])
def test_weights_that_are_not_there_are_refused(client, path):
    with pytest.raises(PolicyError, match="path: no checkpoint"):
        client.load_weights(path, 9)


@pytest.mark.parametrize(
    ("request_json", "file", "field"),
    [
        ({"turn_index": -1}, None, "turn_index"),
        ({"turn_index": 0, "temperature": 9}, None, "temperature"),
        ({"turn_index": 0, "surprise": 1}, None, "surprise"),
        ({"turn_index": 0, "text": "x"}, b"not a png", "screenshot"),
    ],
)
def test_a_bad_request_names_its_field(server, request_json, file, field):
    files = {"request": (None, json.dumps(request_json), "application/json")}
    if file:
        files["screenshot"] = ("s.png", file, "image/png")
    answer = httpx.post(
        f"{server}/trajectories/bad/turns", files=files, headers=_auth(), trust_env=False, timeout=60
    )
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith(field)


def test_without_the_token_nothing_is_answered(server):
    for method, path in [
        ("GET", "/health"),
        ("POST", "/trajectories/x/turns"),
        ("DELETE", "/trajectories/x"),
        ("POST", "/weights"),
        ("POST", "/canary"),
    ]:
        answer = httpx.request(
            method, server + path, headers={"Authorization": "Bearer no"}, trust_env=False, timeout=60
        )
        assert answer.status_code == 401


def test_a_model_that_cannot_be_loaded_ends_the_server(tmp_path):
    result = subprocess.run(
        [sys.executable, "-m", "training.sampler.server", "--model", str(tmp_path / "nothing")],
        env={**os.environ, "DESKHAND_POLICY_TOKEN": TOKEN, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 1
    assert "cannot load the model" in result.stderr
