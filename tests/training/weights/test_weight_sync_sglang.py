"""Weight syncs into SGLang servers, here the stand-in; the real ones: benchmarks/gpu/weight_sync.py."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from testing.training.recorded_samples import toy_learner
from testing.training.tiny_model import tiny_folder
from tests.training.sampler.test_engine_sglang import SEVERAL, TOKEN, Running, ask
from training.contracts import policy_server
from training.contracts.config import ExperimentConfig, parse_config
from training.contracts.route_types import Nothing
from training.contracts.weight_requests import Canary, Commit, Load, WeightsRequest
from training.distributed.world import World, start_world, stop_world
from training.render.renderer import Renderer
from training.rollouts.coordinator_client import CoordinatorAddress, CoordinatorClient
from training.weights.sync import WeightSync, build_weight_sync

pytestmark = pytest.mark.timeout(600)


class Door(CoordinatorClient):
    """The coordinator's part in a weight sync: pass it on and ask for the canary."""

    def __init__(self, url: str) -> None:
        super().__init__(CoordinatorAddress(url=url, token=TOKEN), patience_s=120.0)
        self.stages: list[str] = []

    def sync_weights(self, request: WeightsRequest) -> Canary | None:
        self.stages.append(request.stage)
        super().sync_weights(request)
        if not isinstance(request, Load | Commit):
            return None
        return self._ask(policy_server.CANARY, Nothing())

    def health(self) -> dict:
        return self._ask(policy_server.HEALTH, Nothing()).model_dump()


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    yield start_world()
    stop_world()


def config_of(channel: str, servers: int) -> ExperimentConfig:
    placement = "colocated" if channel == "ipc" else "own"
    engine = {"name": "sglang", "servers": servers, "placement": placement, "weight_sync": channel}
    return parse_config({"model": {"path": str(tiny_folder())}, "engine": engine})


def sync_of(config: ExperimentConfig, world: World, door: Door, folder: Path) -> WeightSync:
    renderer = Renderer.from_folder(tiny_folder(), config.model, config.prompt)
    trainer = toy_learner(config, world, renderer, folder / "frames")
    return build_weight_sync(
        trainer,
        config,
        door,
        pixels=trainer.pixels,
        renderer=renderer,
        source=tiny_folder(),
        directory=folder / "weights",
    )


@contextmanager
def served(folder: Path, **options: Any) -> Iterator[Running]:
    """A policy server in front of stand-ins."""
    running = Running(folder, **options)
    try:
        running.wait()
        yield running
    finally:
        running.stop()


@torch.no_grad()
def move(sync: WeightSync) -> None:
    """Another version of the trainer's weights."""
    for parameter in sync.learner.policy.parameters():
        parameter.add_(torch.randn_like(parameter) * 0.02)


@pytest.mark.parametrize(
    ("channel", "servers"), [("nccl", 2), pytest.param("ipc", 1, marks=pytest.mark.slow)]
)
def test_servers_take_new_weights_in_the_middle_of_a_completion(
    channel: str, servers: int, world: World, tmp_path: Path
) -> None:
    with served(tmp_path / "engine", servers=servers, token_s=0.1) as running:
        door = Door(running.url)
        sync = sync_of(config_of(channel, servers), world, door, tmp_path)
        with ThreadPoolExecutor(SEVERAL) as pool:
            drawing = [
                pool.submit(ask, running.client_of(), f"long-{number}", 0, max_tokens=40)
                for number in range(SEVERAL)
            ]
            time.sleep(1)  # some of its forty tokens of a tenth of a second and more each
            for version in (1, 2):
                move(sync)
                report = sync.push(version)
                assert report.drift is not None
                assert report.drift < 1e-4
                assert not report.fell_back
            completions = [one.result() for one in drawing]
        spanning = [one for one in completions if len(set(one.policy_versions)) > 1]
        assert spanning, "they went on under new weights"
        assert all(len(one.policy_versions) == len(one.token_ids) for one in spanning)
        assert door.health()["policy_version"] == 2
        assert all(server["is_ready"] for server in running.engine()["servers"])
        sync.close()


@pytest.mark.slow
def test_a_server_that_is_started_again_gets_weights_that_were_never_in_a_folder(
    world: World, tmp_path: Path
) -> None:
    with served(tmp_path / "engine") as running:
        door = Door(running.url)
        sync = sync_of(config_of("nccl", 1), world, door, tmp_path)
        move(sync)
        assert not sync.push(1).fell_back
        os.kill(running.engine()["servers"][0]["pid"], signal.SIGKILL)
        while not door.health().get("needs_weights"):
            time.sleep(0.2)
        report = sync.push(1)
        assert report.fell_back, "the group died with the server"
        assert report.drift is not None
        assert report.drift < 1e-4
        assert "needs_weights" not in door.health()
        move(sync)
        assert not sync.push(2).fell_back, "and the quick way works again"
        sync.close()
