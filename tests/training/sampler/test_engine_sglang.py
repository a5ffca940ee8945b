"""The policy server in front of SGLang servers, here a stand-in that speaks SGLang's HTTP schema.

What SGLang itself computes is compared with transformers on a GPU: benchmarks/gpu/engine_smoke.py.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest
import yaml

from testing.training.teacher_forcing import teacher_forced_logprobs
from testing.training.tiny_model import SIZE, Frames, renderer, screenshot, tiny_folder
from training.content.recipes.tiny.make_checkpoint import make_tiny
from training.contracts.config import ExperimentConfig, ModelConfig
from training.contracts.eye_test import EyeTestAnswer
from training.contracts.types import Observation, Task, Trajectory, TrajectoryStatus, Turn
from training.loop.eye_test import judged
from training.loop.reference_reader import reference_reader
from training.sampler.canary import canary_png, canary_sequence
from training.sampler.engines.transformers_engine import load_model
from training.sampler.sglang import server_endpoints
from workers.env.policy_client import PolicyClient, PolicyError

TOKEN = "a-test-token"
SEVERAL = 3
"""Completions at once where one has to be long: the random model ends one in thirty within ten tokens."""
NUM_TOP = 3
STAND_IN = Path(__file__).resolve().parents[3] / "testing" / "training" / "sglang_stand_in"


class Running:
    """A policy server process and how to ask it."""

    def __init__(
        self,
        folder: Path,
        *,
        servers: int = 1,
        token_s: float = 0.0,
        modules: Path = STAND_IN,
        lora: dict | None = None,
        **engine: object,
    ) -> None:
        """`modules`: where the servers find the module sglang."""
        folder.mkdir(parents=True, exist_ok=True)
        config, self.port_file = folder / "config.yaml", folder / "port"
        settings = {"name": "sglang", "servers": servers, "start_timeout_s": 300, **engine}
        sampling = {"max_context_tokens": 2000, "top_logprobs": NUM_TOP}
        config.write_text(yaml.safe_dump({"sampling": sampling, "engine": settings, "lora": lora or {}}))
        command = [sys.executable, "-m", "training.sampler.server", "--model", str(tiny_folder())]
        environment = {
            **os.environ,
            "DESKHAND_POLICY_TOKEN": TOKEN,
            "DESKHAND_SGLANG_PYTHON": sys.executable,
            "DESKHAND_SGLANG_PATH": str(modules),
            "STAND_IN_TOKEN_S": str(token_s),
        }
        self.process = subprocess.Popen(
            [*command, "--config", str(config), "--port-file", str(self.port_file)],
            env=environment,
            stderr=None if modules == STAND_IN else subprocess.PIPE,
            text=True,
        )
        self.said: list[str] = []

    def wait(self) -> PolicyClient:
        """A client once it is ready; remembers what it said while it was not."""
        while not self.port_file.exists():
            assert self.process.poll() is None, "the server ended before it listened"
            time.sleep(0.1)
        url = f"http://127.0.0.1:{self.port_file.read_text().strip()}"
        for _ in range(3000):
            assert self.process.poll() is None, "the server ended while it loaded"
            answer = httpx.get(f"{url}/health", headers=auth(), trust_env=False, timeout=30)
            if answer.status_code == 200:
                self.client = PolicyClient(url, TOKEN, timeout_s=300)
                self.url = url
                return self.client
            self.said.append(answer.json()["error"]["message"])
            time.sleep(0.1)
        raise AssertionError("the server never became ready")

    def client_of(self) -> PolicyClient:
        """Another connection: clients are not shared between threads."""
        return PolicyClient(self.url, TOKEN, timeout_s=300)

    def engine(self) -> dict:
        return httpx.get(f"{self.url}/engine", headers=auth(), trust_env=False).json()

    def post(self, path: str) -> None:
        httpx.post(
            f"{self.url}{path}", headers=auth(), json={}, trust_env=False, timeout=60
        ).raise_for_status()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)


def auth() -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    server = Running(tmp_path_factory.mktemp("policy"), servers=2, token_s=0.02, max_restarts=9)
    try:
        server.wait()
        yield server
    finally:
        server.stop()


def ask(client, name, turn, *, seed=1, text="Choose row 4.", max_tokens=8, temperature=1.0):
    return client.complete(
        name, turn_index=turn, text=text, screenshot=screenshot(seed), temperature=temperature,
        max_tokens=max_tokens,
    )  # fmt: skip


def play(client, name, num_turns, temperature=1.0, max_tokens=8):
    """(rendered, frames) of a trajectory as the trainer gets it."""
    reader, frames, turns = renderer(), Frames(), []
    for index in range(num_turns):
        png, text = screenshot(20 + index), "Choose row 2." if index == 0 else "done"
        completion = client.complete(
            name, turn_index=index, text=text, screenshot=png, temperature=temperature, max_tokens=max_tokens
        )
        observation = Observation(sha256=frames.store(png), width=SIZE[0], height=SIZE[1], text=text)
        turns.append(Turn(index=index, observation=observation, completion=completion))
    trajectory = Trajectory(
        trajectory_id=1, group_id=1, task=Task(task_id="t", instruction="Choose row 2."), turns=tuple(turns),
        source="policy", status=TrajectoryStatus.TERMINATED,
    )  # fmt: skip
    return reader.render_trajectory(trajectory), frames


def scored(rendered, frames, temperature=1.0):
    reader = renderer()
    return teacher_forced_logprobs(
        load_model(tiny_folder()), rendered, frames.pixels(reader), image_pad_id=reader.image_pad_id,
        pad_id=reader.pad_id, temperature=temperature, banned_ids=reader.banned_ids,
    )  # fmt: skip


def masked(rendered):
    return [p for p, m in zip(rendered.behaviour_logprobs, rendered.loss_mask, strict=True) if m]


def test_the_start_is_told_in_words(running):
    assert any("SGLang server 1 of 2: starting Python" in words for words in running.said)


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_what_was_sampled_is_what_the_trainer_scores(running, temperature):
    rendered, frames = play(running.client, f"parity-{temperature}", 3, temperature)
    assert masked(rendered) == pytest.approx(scored(rendered, frames, temperature), abs=1e-4)


def test_the_alternatives_of_each_token_come_with_the_completion(running):
    completion = ask(running.client, "alternatives", 0)
    found, reader = completion.alternatives, renderer()
    assert len(found.token_ids) == len(found.texts) == len(found.logprobs) == len(completion.token_ids)
    for place, ids in enumerate(found.token_ids):
        assert len(set(ids)) == NUM_TOP
        assert not set(ids) & set(reader.banned_ids)
        assert list(found.texts[place]) == [reader.decode([token]) for token in ids]
        assert list(found.logprobs[place]) == sorted(found.logprobs[place], reverse=True)
        own, logprob = completion.token_ids[place], completion.behaviour_logprobs[place]
        if own in ids:
            assert found.logprobs[place][ids.index(own)] == pytest.approx(logprob, abs=1e-4)
        else:
            assert logprob <= found.logprobs[place][-1] + 1e-4


def test_sglangs_likeliest_tokens_are_asked_for_and_read():
    call = server_endpoints.generate([1, 2], {}, num_top=2)
    assert call.body["top_logprobs_num"] == 2
    meta = {"finish_reason": {"type": "length"}, "weight_version": "4"}
    tokens = {"output_token_logprobs": [[-0.5, 7, None], [-0.1, 8, None]]}
    top = {"output_top_logprobs": [[[-0.5, 7, None], [-1.5, 9, None]], None]}
    read = call.answer(200, json.dumps({"meta_info": meta | tokens | top}).encode())
    assert (read.token_ids, read.top) == ([7, 8], [[(7, -0.5), (9, -1.5)], []])

    plain = server_endpoints.generate([1, 2], {})
    assert "top_logprobs_num" not in plain.body
    assert plain.answer(200, json.dumps({"meta_info": meta | tokens}).encode()).top == []


def test_greedy_logprobs_are_those_at_temperature_one(running):
    rendered, frames = play(running.client, "greedy", 1, 0.0)
    assert masked(rendered) == pytest.approx(scored(rendered, frames), abs=1e-4)


def test_trajectories_stay_with_a_server_and_use_all_of_them(running):
    before = running.engine()["usage"]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: play(running.client_of(), f"stay-{name}", 2), range(4)))
    after = running.engine()["usage"]
    assert after["num_requests"] - before["num_requests"] == 8
    cached = after["cached_tokens"] - before["cached_tokens"]
    assert cached / (after["prompt_tokens"] - before["prompt_tokens"]) > 0.3


def test_the_canary_is_scored_without_the_banned_ids(running):
    answer = running.client.canary()
    rendered = canary_sequence(renderer())
    reader = renderer()
    wanted = teacher_forced_logprobs(
        load_model(tiny_folder()), rendered, lambda _: reader.pixels(canary_png()),
        image_pad_id=reader.image_pad_id, pad_id=reader.pad_id, banned_ids=reader.banned_ids,
    )  # fmt: skip
    given = [p for p, m in zip(answer.logprobs, answer.loss_mask, strict=True) if m]
    assert given == pytest.approx(wanted, abs=1e-4)


def test_the_eye_test_reads_all_sizes_and_says_what_the_servers_are(running):
    answer = httpx.post(
        f"{running.url}/eyes", json={"is_whole": False}, headers=auth(), timeout=60, trust_env=False
    )
    seen = EyeTestAnswer.model_validate_json(answer.content)
    assert (seen.facts.engine, seen.facts.version) == ("sglang", "stand-in")
    assert seen.facts.kernels == "attention eager, of pictures default"
    config = ExperimentConfig(model=ModelConfig(path=str(tiny_folder())))
    gap, _ = reference_reader(config)
    found = judged(seen, gap, config, 0, 0.0)
    assert len(found.gaps) == 4
    assert not found.problem


def test_a_completion_goes_on_under_new_weights_and_every_token_says_whose_it_is(running, tmp_path):
    folder = make_tiny(tmp_path / "new", seed=8)
    with ThreadPoolExecutor(SEVERAL) as pool:
        asked = [
            pool.submit(ask, running.client_of(), f"across-{number}", 0, max_tokens=200)
            for number in range(SEVERAL)
        ]
        while running.engine()["usage"]["num_continued"] == 0 and not all(one.done() for one in asked):
            version = running.engine()["policy_version"] + 1
            assert running.client.load_weights(str(folder), version) == version
        completions = [one.result() for one in asked]
    assert running.engine()["usage"]["num_continued"] >= 1
    completion = max(completions, key=lambda one: len(set(one.policy_versions)))
    assert len(completion.policy_versions) == len(completion.token_ids)
    assert list(completion.policy_versions) == sorted(completion.policy_versions)
    assert completion.policy_version == completion.policy_versions[0] < completion.policy_versions[-1]
    running.client.load_weights(str(tiny_folder()), version + 1)


def test_weights_that_do_not_fit_are_refused_by_name_and_drawing_goes_on(running, tmp_path):
    folder = make_tiny(tmp_path / "broken", seed=1)
    (folder / "model.safetensors").unlink()
    with pytest.raises(PolicyError, match="broken"):
        running.client.load_weights(str(folder), 99)
    assert ask(running.client, "after-refusal", 0).policy_version != 99


def test_nothing_is_drawn_while_the_servers_sleep(running):
    running.post("/sleep")
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask, running.client_of(), "asleep", 0)
        time.sleep(1.0)
        assert not asked.done()
        running.post("/wake")
        assert asked.result().token_ids


def test_a_turn_whose_server_is_killed_is_drawn_anew_and_recorded_once(running):
    restarts = running.engine()["num_restarts"]
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(ask, running.client_of(), f"killed-{n}", 0, max_tokens=60) for n in range(2)]
        time.sleep(0.5)
        for server in running.engine()["servers"]:
            os.kill(server["pid"], signal.SIGKILL)
        completions = [one.result() for one in asked]
    assert running.engine()["num_restarts"] == restarts + 2
    for number, completion in enumerate(completions):
        assert len(completion.token_ids) == len(completion.behaviour_logprobs)
        assert ask(running.client, f"killed-{number}", 0) == completion


@pytest.mark.slow
def test_servers_end_with_a_policy_server_that_is_killed(tmp_path):
    server = Running(tmp_path / "policy")
    server.wait()
    pids = [one["pid"] for one in server.engine()["servers"]]
    server.process.kill()
    server.process.wait(10)
    for pid in pids:
        for _ in range(200):
            if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                break
            time.sleep(0.1)
        else:
            raise AssertionError("an SGLang server outlived its policy server")


@pytest.mark.slow
def test_a_server_that_cannot_start_ends_the_policy_server_with_its_words(tmp_path):
    server = Running(tmp_path / "policy", modules=tmp_path, max_restarts=0)
    said = server.process.communicate(timeout=300)[1]
    assert server.process.returncode == 1
    assert "engine.max_restarts = 0 is used up" in said
    assert "No module named" in said
