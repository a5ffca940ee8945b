"""A model without eyes goes through the whole trainer: SFT, GRPO, weight sync, evaluation, export."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from transformers import AutoModelForCausalLM

from testing.training.tiny_families import make_family
from testing.training.toy_coordinator import ToyCoordinator
from testing.training.toy_desktops import ToyDesktops
from tests.training.conftest import toy_config
from tests.training.loop.test_train import arguments
from training.checkpoints.export import export_checkpoint
from training.loop.train import main
from training.render.renderer import Renderer
from training.sampler.engines.transformers_engine import TransformersEngine


def test_a_text_model_learns_from_text_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, output = make_family(tmp_path / "model", "qwen2"), tmp_path / "run"
    sft = {"enabled": True, "demonstrations_per_family": 2, "max_steps": 20, "evaluate_every": 20}
    config = toy_config(
        model,
        prompt={"observation": ["accessibility"]},
        sft=sft | {"muon_learning_rate": 0, "learning_rate": 1e-2},
        algorithm={"num_steps": 1},
        evaluation={"num_tasks": 2, "before": False},
    )
    renderer = Renderer.from_folder(model, config.model, config.prompt)
    engine = TransformersEngine(model, renderer, seed=1)
    coordinator = ToyCoordinator(ToyDesktops(engine=engine, renderer=renderer, frames=tmp_path / "frames"))
    coordinator.records_demonstrations = True
    for name, value in (coordinator.environment() | {"DESKHAND_TORCH_THREADS": "1"}).items():
        monkeypatch.setenv(name, value)
    handler = signal.getsignal(signal.SIGTERM)
    try:
        assert main(arguments(config, output)) == 0
    finally:
        signal.signal(signal.SIGTERM, handler)
        coordinator.close()
    finished = [stage["name"] for stage in coordinator.seen["/stage"] if stage["status"] == "finished"]
    assert finished == ["demonstrations", "sft", "grpo", "evaluation-after"]
    losses = coordinator.metric("sft/loss")
    assert losses[-1] < losses[0]
    assert len(coordinator.metric("loss/policy")) == 1
    assert max(coordinator.metric("sync/drift")) < 1e-5
    assert all(
        not turn.observation.sha256
        for group in coordinator.groups
        for member in group.trajectories
        for turn in member.turns
    )
    newest = Path(coordinator.seen["/checkpoints"][-1]["path"])
    AutoModelForCausalLM.from_pretrained(export_checkpoint(newest, tmp_path / "export"))
