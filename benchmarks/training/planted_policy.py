"""A policy server in this process that writes given completions first and goes on as the policy it is.

Everything but the choice of tokens is the product's: contexts, sessions, records, the routes. A trajectory
with a plan gets its completions turn by turn; behind them, and without a plan, the engine samples.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import uvicorn

from training.contracts.config import ExperimentConfig
from training.sampler.engine import Engine, EngineSequence, SampledCompletion, SamplingSettings
from training.sampler.server import ServedModel, build_app

TOKEN = "credit-proof"
START_S = 120.0
Tokens = tuple[int, ...]


class PlantingEngine:
    """An engine that answers planned turns without sampling."""

    def __init__(self, engine: Engine, stop_id: int) -> None:
        self.engine, self.stop_id = engine, stop_id
        self.plans: dict[str, list[Tokens]] = {}
        """Trajectory -> the completions that are still to be written."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    async def generate(self, sequence: EngineSequence, sampling: SamplingSettings) -> SampledCompletion:
        trajectory = sequence.sequence_id.rpartition("/")[2]
        if not (plan := self.plans.get(trajectory)):
            return await self.engine.generate(sequence, sampling)
        tokens = list(plan.pop(0))
        sequence.token_ids += tokens
        # Nobody sampled them, so they have no logprobs; these rollouts never meet an optimiser.
        return SampledCompletion(
            token_ids=tokens,
            logprobs=[0.0] * len(tokens),
            finish_reason="stop" if tokens[-1] == self.stop_id else "length",
            policy_version=self.engine.policy_version,
        )


class PlantedPolicy:
    """The server: `with PlantedPolicy(folder, config) as policy: policy.plan(trajectory_id, completions)`."""

    def __init__(self, model: Path, config: ExperimentConfig) -> None:
        self.app = build_app(ServedModel(model=str(model), config=config, token=TOKEN))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.server = uvicorn.Server(uvicorn.Config(self.app, log_level="warning", access_log=False))
        self.thread = threading.Thread(target=lambda: asyncio.run(self.server.serve([self.listener])))

    def __enter__(self) -> PlantedPolicy:
        self.thread.start()
        ends = time.monotonic() + START_S
        while self.app.state.service is None:
            if time.monotonic() > ends or not self.thread.is_alive():
                raise TimeoutError("the policy server did not start")
            time.sleep(0.1)
        service = self.app.state.service
        self.renderer = service.renderer
        self.engine = PlantingEngine(service.engine, self.renderer.stop_id)
        service.engine = self.engine
        return self

    def __exit__(self, *_: object) -> None:
        self.server.should_exit = True
        self.thread.join()

    def plan(self, trajectory_id: int, completions: Sequence[Tokens]) -> None:
        self.engine.plans[str(trajectory_id)] = list(completions)

    def tokens_of(self, text: str) -> Tokens:
        """A whole completion."""
        return tuple(self.renderer.completion_ids(text))
