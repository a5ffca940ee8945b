"""What a step changes reaches the engine: adapters travel beside the weights, not merged into them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from testing.training.gathered_state import full_state
from testing.training.recorded_samples import record_samples, toy_learner
from testing.training.teacher_forcing import teacher_forced_logprobs
from testing.training.tiny_model import tiny_folder
from testing.training.toy_coordinator import ToyCoordinator
from testing.training.toy_desktops import ToyDesktops
from tests.training.conftest import toy_config
from tests.training.sampler.test_engine_sglang import Running, masked, play
from tests.training.weights.test_weight_sync import run, stages
from training.distributed.world import World, start_world, stop_world
from training.model.lora import ADAPTER, adapter_scales, merge, take_adapter
from training.sampler.engines.transformers_engine import TransformersEngine, load_model
from training.update.learner import Learner
from training.weights.adapter_folder import export_adapter

LORA = {"rank": 4, "alpha": 8, "targets": ["q_proj", "v_proj", "down_proj"]}


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    yield start_world()
    stop_world()


def learner_of(model: Path, desktops: ToyDesktops, world: World, rate: float, steps: int = 1) -> Learner:
    """A trainer of adapters after some steps."""
    optimiser = {"learning_rate": rate, "warmup_steps": 0}
    config = toy_config(model, lora=LORA, optimiser=optimiser)
    learner = toy_learner(config, world, desktops.renderer, desktops.frames)
    samples = record_samples(desktops)
    for step in range(steps):
        assert not learner.policy_step(samples, step).was_skipped
    return learner


def products(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Layer -> what its adapter adds to its weight, fp64."""
    named = full_state(model)
    found = {}
    for layer, scale in adapter_scales(model).items():
        down, up = (named[f"{layer}.lora_{side}.{ADAPTER}.weight"].double() for side in "AB")
        found[layer] = scale * up @ down
    return found


def received_share(wanted: torch.Tensor, received: torch.Tensor) -> float:
    """1 - |received - wanted| / |wanted|."""
    return 1 - float((received - wanted).norm() / wanted.norm())


@pytest.mark.parametrize("steps", [1, 10])
def test_a_bfloat16_engine_receives_all_of_a_small_step(
    steps: int, toy_model: Path, toy_desktops: ToyDesktops, world: World, tmp_path: Path
) -> None:
    learner = learner_of(toy_model, toy_desktops, world, 2e-6, steps)
    export_adapter(learner.policy.model, toy_model, tmp_path / "v1", world)
    engine = TransformersEngine(toy_model, toy_desktops.renderer, dtype="bfloat16")
    engine.load_weights(tmp_path / "v1", 1)
    ours, theirs = products(learner.policy.model), products(engine.model)
    assert ours.keys() == theirs.keys()
    assert min(received_share(ours[layer], theirs[layer]) for layer in ours) > 0.9999
    # An engine that keeps adapters in bfloat16, as SGLang does, still has 99 % of it.
    for parameter in (p for name, p in engine.model.named_parameters() if ".lora_" in name):
        parameter.data = parameter.data.bfloat16()
    rounded = products(engine.model)
    assert min(received_share(ours[layer], rounded[layer]) for layer in ours) > 0.99
    named = full_state(learner.policy.model)
    merged = []
    for layer, scale in adapter_scales(learner.policy.model).items():
        base, down, up = (
            named[f"{layer}.{part}.weight"]
            for part in ("base_layer", f"lora_A.{ADAPTER}", f"lora_B.{ADAPTER}")
        )
        change = merge(base, down, up, scale).bfloat16().double() - base.bfloat16().double()
        merged.append(received_share(ours[layer], change))
    assert max(merged) < 0, "merged weights in bfloat16 are wrong by more than the change"


def test_an_adapted_engine_answers_as_the_trainer_and_as_another_version_next(
    toy_model: Path, toy_desktops: ToyDesktops, world: World, tmp_path: Path
) -> None:
    engine = TransformersEngine(toy_model, toy_desktops.renderer)
    before = [p.detach().clone() for name, p in engine.model.named_parameters()]
    samples = record_samples(toy_desktops)[:1]
    for version, steps in enumerate((2, 4), start=1):
        learner = learner_of(toy_model, toy_desktops, world, 1e-2, steps)
        export_adapter(learner.policy.model, toy_model, tmp_path / f"v{version}", world)
        engine.load_weights(tmp_path / f"v{version}", version)
        desktops = ToyDesktops(engine=engine, renderer=toy_desktops.renderer, frames=toy_desktops.frames)
        (sample, *_) = record_samples(desktops)
        (ours,) = learner.token_logprobs([sample])
        behaviour = [p for p, bit in zip(sample.behaviour_logprobs, sample.loss_mask, strict=True) if bit]
        assert behaviour == pytest.approx(ours, abs=1e-4)
        assert engine.policy_version == version
    assert learner.token_logprobs(samples) != toy_learner(
        toy_config(toy_model), world, toy_desktops.renderer, toy_desktops.frames
    ).token_logprobs(samples), "the adapters have moved the policy"
    kept = [p for name, p in engine.model.named_parameters() if ".lora_" not in name]
    assert all(torch.equal(old, new) for old, new in zip(before, kept, strict=True)), "the base never moves"


def test_an_adapter_of_other_layers_is_refused(
    toy_model: Path, toy_desktops: ToyDesktops, world: World, tmp_path: Path
) -> None:
    learner = learner_of(toy_model, toy_desktops, world, 1e-2)
    export_adapter(learner.policy.model, toy_model, tmp_path / "v1", world)
    engine = TransformersEngine(toy_model, toy_desktops.renderer)
    engine.load_weights(tmp_path / "v1", 1)
    config = toy_config(toy_model, lora=LORA | {"targets": ["k_proj"]})
    other = toy_learner(config, world, toy_desktops.renderer, toy_desktops.frames)
    export_adapter(other.policy.model, toy_model, tmp_path / "v2", world)
    with pytest.raises(ValueError, match="other layers"):
        engine.load_weights(tmp_path / "v2", 2)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_training_adapters_syncs_adapters(
    processes: int, toy_model: Path, coordinator: ToyCoordinator, tmp_path: Path
) -> None:
    config = toy_config(toy_model, algorithm={"num_steps": 2}, lora=LORA, optimiser={"learning_rate": 1e-2})
    run(config, tmp_path / "run", coordinator, processes)
    assert stages(coordinator) == ["load"] * 3
    assert max(coordinator.metric("sync/drift")) < 1e-4
    assert adapter_scales(coordinator.desktops.engine.model)


def test_sglang_servers_get_the_adapter_also_after_a_restart(
    world: World, toy_desktops: ToyDesktops, tmp_path: Path
) -> None:
    """SGLang's stand-in: our calls and their order; that SGLang adds what it is given is not shown here."""
    config = toy_config(tiny_folder(), lora=LORA)
    learner = toy_learner(config, world, toy_desktops.renderer, toy_desktops.frames)
    adapted = load_model(tiny_folder())
    for name, parameter in learner.policy.model.named_parameters():
        if ".lora_B." in name:
            torch.nn.init.normal_(parameter.data, std=0.2)
    server = Running(tmp_path / "policy", lora=LORA)
    try:
        client = server.wait()
        for version in (1, 2, 2):  # the same one again, as after a trainer's restart
            export_adapter(learner.policy.model, tiny_folder(), tmp_path / f"v{version}", world)
            assert client.load_weights(str(tmp_path / f"v{version}"), version) == version
        take_adapter(adapted, tmp_path / "v2")
        _check_parity(client, adapted, "before")
        os.kill(server.engine()["servers"][0]["pid"], signal.SIGKILL)
        _check_parity(client, adapted, "after")
        assert server.engine()["num_restarts"] == 1
    finally:
        server.stop()


def _check_parity(client, model: torch.nn.Module, name: str) -> None:
    rendered, frames = play(client, name, 2)
    from testing.training.tiny_model import renderer

    reader = renderer()
    wanted = teacher_forced_logprobs(
        model, rendered, frames.pixels(reader), image_pad_id=reader.image_pad_id, pad_id=reader.pad_id,
        banned_ids=reader.banned_ids,
    )  # fmt: skip
    assert masked(rendered) == pytest.approx(wanted, abs=1e-4)
    assert {*rendered.policy_versions} - {-1} == {2}
