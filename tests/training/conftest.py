"""A tiny model, its renderer and engine, and a coordinator over toy desktops."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from testing.training.toy_coordinator import ToyCoordinator
from testing.training.toy_desktops import ToyDesktops
from training.content.recipes.tiny.make_checkpoint import TinySizes, make_tiny
from training.contracts.config import ExperimentConfig, parse_config
from training.render.renderer import Renderer
from training.sampler.engines.transformers_engine import TransformersEngine


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """The tiny model is fastest on one thread, and the machine is shared."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def toy_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Qwen3-VL folder of about 0.2 million parameters."""
    sizes = TinySizes(
        text_hidden=64, text_intermediate=128, vision_hidden=32, vision_intermediate=64, vocabulary=400
    )
    return make_tiny(tmp_path_factory.mktemp("models") / "toy", seed=0, sizes=sizes)


def toy_config(toy_model: Path, **sections: dict) -> ExperimentConfig:
    """A short GRPO experiment on the toy model; keyword arguments override single sections' keys."""
    values: dict[str, dict] = {
        "model": {"path": str(toy_model), "max_pixels": 12288},
        "sampling": {"max_completion_tokens": 6},
        "algorithm": {"group_size": 4, "groups_per_step": 2, "num_steps": 3},
        "optimiser": {"learning_rate": 1e-3, "microbatch_size": 4},
        "evaluation": {"num_tasks": 0},
        "checkpoints": {"every": 2},
    }
    for name, section in sections.items():
        values.setdefault(name, {}).update(section)
    return parse_config(values)


@pytest.fixture(scope="session")
def toy_renderer(toy_model: Path) -> Renderer:
    config = toy_config(toy_model)
    return Renderer.from_folder(toy_model, config.model, config.prompt)


@pytest.fixture
def toy_desktops(toy_model: Path, toy_renderer: Renderer, tmp_path: Path) -> ToyDesktops:
    engine = TransformersEngine(toy_model, toy_renderer, seed=1)
    return ToyDesktops(engine=engine, renderer=toy_renderer, frames=tmp_path / "frames")


@pytest.fixture
def coordinator(toy_desktops: ToyDesktops) -> Iterator[ToyCoordinator]:
    server = ToyCoordinator(toy_desktops)
    yield server
    server.close()
