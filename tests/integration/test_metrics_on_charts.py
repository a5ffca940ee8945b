"""What a trainer reports is on the charts, and what the charts wait for is reported."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from testing.factories import make_experiment, make_user
from testing.training.toy_coordinator import ToyCoordinator
from testing.training.toy_desktops import ToyDesktops
from training.content.recipes.tiny.make_checkpoint import TinySizes, make_tiny
from training.contracts.config import ExperimentConfig, parse_config, to_yaml
from training.loop.train import main
from training.render.renderer import Renderer
from training.sampler.engines.transformers_engine import TransformersEngine
from webapp.experiments.services.metrics import record_metrics

NOT_ON_CHARTS = {
    "optimiser/learning_rate",
    "optimiser/skipped_steps",
    "policy/version",
    "rollout/dropped_groups",
    "rollout/num_trajectories",
    "rollout/reward_std_in_group",
    "rollout/unrecorded",
    "sft/learning_rate",
    "sft/step",
    "sync/fell_back",
}
"""In the log, in an alarm or in words; the API has them all."""

SIZES = TinySizes(
    text_hidden=64, text_intermediate=128, vision_hidden=32, vision_intermediate=64, vocabulary=400
)


def config_of_everything(model: Path) -> ExperimentConfig:
    """A short experiment with every stage and every optional part that reports metrics of its own."""
    values: dict[str, dict[str, Any]] = {
        "model": {"path": str(model), "max_pixels": 12288},
        "sampling": {"max_completion_tokens": 6},
        "sft": {
            "enabled": True,
            "demonstrations_per_family": 2,
            "max_steps": 10,
            "evaluate_every": 10,
            "stop_at_success": 1.0,
            "muon_learning_rate": 0,
        },
        "algorithm": {
            "group_size": 4,
            "groups_per_step": 2,
            "num_steps": 2,
            "max_staleness": 1,
            "updates_per_batch": 2,
            "old_logprobs": "recomputed",
            "correction": "mask",
            "mask_stale_tokens": True,
            "kl_coefficient": 0.01,
            "reference_path": str(model),
        },
        "replay": {"enabled": True},
        "optimiser": {"learning_rate": 1e-3, "microbatch_size": 4},
        "evaluation": {"num_tasks": 2},
        "checkpoints": {"every": 2},
    }
    return parse_config(values)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return make_tiny(tmp_path / "toy", seed=0, sizes=SIZES)


@pytest.fixture
def coordinator(model: Path, tmp_path: Path) -> Iterator[ToyCoordinator]:
    config = config_of_everything(model)
    renderer = Renderer.from_folder(model, config.model, config.prompt)
    engine = TransformersEngine(model, renderer, seed=1)
    server = ToyCoordinator(ToyDesktops(engine=engine, renderer=renderer, frames=tmp_path / "frames"))
    server.records_demonstrations = True
    yield server
    server.close()


@pytest.mark.django_db
def test_every_metric_of_a_run_is_on_a_chart_and_every_chart_gets_its_metrics(
    client: Client, coordinator: ToyCoordinator, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (coordinator.environment() | {"DESKHAND_TORCH_THREADS": "1"}).items():
        monkeypatch.setenv(name, value)
    (tmp_path / "config.yaml").write_text(to_yaml(config_of_everything(model)))
    handler = signal.getsignal(signal.SIGTERM)
    try:
        assert main(["--config", str(tmp_path / "config.yaml"), "--output", str(tmp_path / "run")]) == 0
    finally:
        signal.signal(signal.SIGTERM, handler)

    experiment = make_experiment()
    for point in coordinator.seen["/metrics"]:
        record_metrics(
            experiment_id=experiment.pk,
            attempt=1,
            step=point["step"],
            values=point["values"],
            policy_version=point["policy_version"],
        )
    user = make_user("viewer", team=experiment.team)
    client.force_login(user)
    page = client.get(reverse("experiment-metrics", args=[experiment.pk])).json()

    wanted = {name for panel in page["panels"] for name in panel["names"]}
    areas = tuple(name for name in wanted if name.endswith("/"))
    shown = {name for name in page["series"] if name in wanted or name.startswith(areas)}
    assert set(page["series"]) - shown - NOT_ON_CHARTS == set(), "reported, but on no chart"
    empty = {
        name for name in wanted if not any(one == name or one.startswith(name) for one in page["series"])
    }
    assert empty == set(), "on a chart, but never reported"
